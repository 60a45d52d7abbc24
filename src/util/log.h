/* SPDX-License-Identifier: Apache-2.0 */
/* One line for whoever runs the program, to stderr. Only supervisor, launcher and cli call the first two;
 * modules below return errors. Control characters in the text are shown, not obeyed. */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"
#include "util/str.h"

void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* with --verbose */
void log_debug(const char *fmt, ...)
	__attribute__((format(printf, 1, 2))); /* with CLOCHE_DEBUG=1 */
void log_set_verbose(bool on);

/* For programs that read logs: each line a JSON object {at, level, message} and the fields. */
void log_set_json(bool on);
struct log_field {
	const char *key;  /* plain ASCII */
	const char *text; /* NULL: the number */
	int64_t number;
};
/* Something that happened as it should, with what is known of it; whether it is wanted is the caller's business. Without
 * JSON: the message, then key=value, in quotes where a value has blanks, quotes or = in it. */
void log_fields(const char *message, const struct log_field *fields, size_t n);

/* Adds text for a terminal: control characters, also the C1 ones, bidirectional marks and bytes that are
 * not UTF-8 come out as \n, \t, \x1b, \u202e. */
void log_add_escaped(struct str *out, struct slice text);

#endif
