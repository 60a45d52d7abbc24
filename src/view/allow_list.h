/* SPDX-License-Identifier: Apache-2.0 */
/* The rules to allow that a run would have needed for what it reached: one for each host and port, or for each
 * method and path where its HTTP was read. What was refused is kept apart; what --shadow let through counts as
 * reached. A name that was only looked up is a rule without a port. An address that leads inward needs a rule of its
 * own beside that of the name that led there. */
#ifndef VIEW_ALLOW_LIST_H
#define VIEW_ALLOW_LIST_H

#include "event/event.h"
#include "util/scoped.h"
#include "util/str.h"
#include "view/view_filter.h"
#include "view/view_text.h"

struct allow_list;

/* paths: by method and path. */
struct allow_list *allow_list_new(const struct view_filter *filter, bool paths);
void allow_list_free(struct allow_list *list);
SCOPED_TYPE(allow_list)

void allow_list_add(struct allow_list *list, const struct event *ev);

/* [{"rule":"a.example:443","refused":false}] */
void allow_list_json(struct allow_list *list, struct str *out);
/* A rule a line, refused ones behind "# refused: ". */
void allow_list_text(struct allow_list *list, const struct view_style *style, struct str *out);

#endif
