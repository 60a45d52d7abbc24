/* SPDX-License-Identifier: Apache-2.0 */
/* Each distinct text once: two equal ones come back as the same pointer. Paths, folders, exec ids and
 * argument lists repeat by the thousand in a record. */
#ifndef VIEW_INTERN_H
#define VIEW_INTERN_H

#include "event/event.h"
#include "util/scoped.h"
#include "util/slice.h"

struct intern;

struct intern *intern_new(void);
void intern_free(struct intern *intern);
SCOPED_TYPE(intern)

/* Good as long as intern is. The empty text gives {NULL, 0}. */
struct slice intern_text(struct intern *intern, struct slice text);
const struct event_list *intern_list(struct intern *intern, const struct event_list *list);

#endif
