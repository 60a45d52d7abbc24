/* SPDX-License-Identifier: Apache-2.0 */
#include "util/id.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "util/clock.h"

/* Crockford's digits: no i, l, o, u, which read as others. Sorted as ASCII sorts. */
static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

#define TIME_DIGITS   9
#define RANDOM_DIGITS 7

static void put(char *at, int n, uint64_t v)
{
	while (n-- > 0) {
		at[n] = digits[v & 31];
		v >>= 5;
	}
}

void id_new(const char *prefix, char ret_id[ID_SIZE])
{
	uint64_t noise;

	if (getrandom(&noise, sizeof(noise), 0) != (ssize_t)sizeof(noise))
		abort();
	snprintf(ret_id, ID_SIZE, "%.2s_", prefix);
	put(ret_id + 3, TIME_DIGITS, (uint64_t)clock_wall_ms());
	put(ret_id + 3 + TIME_DIGITS, RANDOM_DIGITS, noise);
	ret_id[ID_LEN] = '\0';
}

bool id_is_valid(const char *prefix, const char *id)
{
	return strlen(id) == ID_LEN && strncmp(id, prefix, 2) == 0 && id[2] == '_' &&
	       strspn(id + 3, digits) == ID_LEN - 3;
}
