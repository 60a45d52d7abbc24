/* SPDX-License-Identifier: Apache-2.0 */
/* Takes secrets out of events before they are kept: `[redacted #fingerprint]` stands where the value was.
 *
 * The fingerprint is six hex digits of a salted SHA-256: the same value has the same one within a record,
 * and nowhere else. What counts as a secret is told in the tables of redact_rules.c. */
#ifndef RECORD_REDACT_H
#define RECORD_REDACT_H

#include "event/event.h"
#include "util/scoped.h"
#include "util/str.h"

struct redact;

struct redact *redact_new(const char *salt);
void redact_free(struct redact *redact);
SCOPED_TYPE(redact)

/* A text that is no secret wherever it stands for one: the stand-in of a secret. Copied; REDACT_ALLOWED_MAX of them. */
#define REDACT_ALLOWED_MAX 256U
void redact_allow(struct redact *redact, struct slice text);

/* The event to keep: ev itself where it holds no secret, else a copy, good until the next call. */
const struct event *redact_event(struct redact *redact, const struct event *ev);

/* One text: false where there is no secret in it (out is untouched), else out gets the text without. */
bool redact_text(const struct redact *redact, struct slice text, struct str *out);
/* Of a text whose end is missing, or whose beginning is: also what a secret at the cut has left. */
bool redact_text_cut(const struct redact *redact, struct slice text, bool is_tail, struct str *out);
/* A list of arguments, as text each, and `--password X` over two of them; the new list is good until the
 * next redact_event(). */
bool redact_list(struct redact *redact, struct event_list list, struct event_list *ret_list);

#endif
