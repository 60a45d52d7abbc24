/* SPDX-License-Identifier: Apache-2.0 */
/* Time: nanoseconds since boot for order and durations, wall clock only for people. */
#ifndef UTIL_CLOCK_H
#define UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "util/str.h"

#define CLOCK_NS_PER_MS 1000000LL
#define CLOCK_NS_PER_S  1000000000LL

/* What the kernel gives, as one number. */
static inline int64_t clock_ns(struct timespec t)
{
	return t.tv_sec * CLOCK_NS_PER_S + t.tv_nsec;
}

int64_t clock_mono_ns(void); /* CLOCK_MONOTONIC, the clock of the kernel half */
int64_t clock_wall_ms(void); /* since 1970, UTC */

/* RFC 3339 in UTC with milliseconds: 2026-11-29T14:10:02.000Z */
#define CLOCK_TEXT_LEN 25
void clock_format(int64_t wall_ms, char text[CLOCK_TEXT_LEN]);
/* Reads what clock_format() wrote, and shorter forms of it (no milliseconds, a space for the T, no Z,
 * date alone). -EINVAL otherwise. */
int clock_parse(const char *text, int64_t *ret_wall_ms);
/* "30s", "5m", "2h", "1d", "250ms", or a bare number of seconds, in ms. -EINVAL otherwise. */
int clock_parse_duration(const char *text, int64_t *ret_ms);
/* "2m14s", "340ms": for people. */
void clock_add_duration(struct str *out, int64_t ms);

#endif
