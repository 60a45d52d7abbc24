/* SPDX-License-Identifier: Apache-2.0 */
/* Finds secrets in one text. */
#ifndef RECORD_REDACT_SCAN_H
#define RECORD_REDACT_SCAN_H

#include <stdbool.h>

#include "util/slice.h"
#include "util/str.h"

/* What holds for a whole record. */
struct redact_scan_rules {
	const char *salt;
	struct slice *allowed; /* no secrets, wherever they stand for one */
	size_t n_allowed;
};

void redact_scan_init(void); /* fills its table; as often as one likes */

/* False where there is no secret in it (out is untouched), else out gets the text without. is_argument: the
 * text is one argument, so that in NAME=VALUE the value goes to its end. */
bool redact_scan_text(const struct redact_scan_rules *rules, struct slice text, bool is_argument,
	struct str *out);
/* Adds the text with all from a place on as one secret. False where that is allowed: nothing was added. */
bool redact_scan_put(
	const struct redact_scan_rules *rules, struct slice text, size_t from, struct str *out);
/* No value of its own: empty, a variable, a word of a language, stars, or redacted already. */
bool redact_scan_is_no_value(struct slice v);

#endif
