/* SPDX-License-Identifier: Apache-2.0 */
/* The one encoding of events: to JSON lines and back. */
#ifndef EVENT_EVENT_JSON_H
#define EVENT_EVENT_JSON_H

#include "event/event.h"
#include "util/err.h"
#include "util/scoped.h"
#include "util/str.h"

/* Adds one object, without a line end. sandbox is the id that stands on each line. */
void event_json_write(struct str *out, const struct event *ev, struct slice sandbox);

/* A parsed line: the event and the memory its slices point into. */
struct event_line;

/* Reads one line. Unknown fields and what has another type than ours are passed over, an unknown kind is
 * -ENOENT (a later version's: skip it), -EBADMSG is a line that is no event. Where <field>_b64 stands
 * beside a field, its bytes are the value. *ret_line is the caller's, to be used again for the next line
 * (NULL at first); event_json_get() is good until then. */
int event_json_read(struct slice line, struct event_line **ret_line, struct err *err);
const struct event *event_json_get(const struct event_line *line);
void event_line_free(struct event_line *line);
SCOPED_TYPE(event_line)

#endif
