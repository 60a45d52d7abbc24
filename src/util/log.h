/* SPDX-License-Identifier: Apache-2.0 */
/* One line for whoever runs the program, to stderr. Only supervisor, launcher and cli call the first two;
 * modules below return errors. Control characters in the text are shown, not obeyed. */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <stdbool.h>

#include "util/slice.h"
#include "util/str.h"

void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* with --verbose */
void log_debug(const char *fmt, ...)
	__attribute__((format(printf, 1, 2))); /* with CLOCHE_DEBUG=1 */
void log_set_verbose(bool on);

/* Adds text for a terminal: control characters, also the C1 ones, bidirectional marks and bytes that are
 * not UTF-8 come out as \n, \t, \x1b, \u202e. */
void log_add_escaped(struct str *out, struct slice text);

#endif
