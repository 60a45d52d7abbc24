/* SPDX-License-Identifier: Apache-2.0 */
/* Ids: a prefix and 16 lowercase base32 characters (80 bits). The first nine hold the time in ms, so
 * ids of later things sort behind those of earlier ones; the rest is random. */
#ifndef UTIL_ID_H
#define UTIL_ID_H

#include <stdbool.h>

#define ID_LEN  19 /* "sb_" and 16 characters */
#define ID_SIZE (ID_LEN + 1)

/* prefix is two letters: "sb" for sandboxes, "ex" for execs. */
void id_new(const char *prefix, char ret_id[ID_SIZE]);
bool id_is_valid(const char *prefix, const char *id);

#endif
