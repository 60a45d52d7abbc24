/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an event as a JSON object: event_json_write() by its inner name. */
#ifndef EVENT_EVENT_PEN_H
#define EVENT_EVENT_PEN_H

#include "event/event.h"
#include "util/str.h"

void event_pen_write(struct str *out, const struct event *ev, struct slice sandbox);

#endif
