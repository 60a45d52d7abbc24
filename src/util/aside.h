/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that go in one step, whatever cuts it off.
 *
 * A folder is renamed into another one, the trash, and removed there: under its own name it is whole or gone, and what
 * a kill or an error leaves of it in the trash, whoever empties that next removes. The folders above are not synced:
 * filesystems with a journal bring a rename to the disk no later than the removals that follow it. */
#ifndef UTIL_ASIDE_H
#define UTIL_ASIDE_H

#include <stdbool.h>

/* Moves dir to <trash>/<name>, or to a like name where that is taken; makes the trash (not what is above it). 0, and
 * where it is now (the caller's; may be NULL). -EXDEV, -ENOSPC and the like: see aside_is_hindered(). */
int aside_move(const char *trash, const char *dir, const char *name, char **ret_path);

/* Whether it cannot be moved but may be removed where it is: another filesystem, or no room for one more name. */
bool aside_is_hindered(int r);

/* Removes dir where it is, the entry called last (may be NULL) at the end: it tells what the rest belongs to. */
int aside_remove_here(const char *dir, const char *last);

/* aside_move(), then removes it there; where it is hindered, aside_remove_here(). One that is not there is fine. Once
 * it was moved it is gone: what cannot be removed stays in the trash, and is no error. */
int aside_remove(const char *trash, const char *dir, const char *name, const char *last);

/* Removes what is in the trash, as far as that goes; the trash stays. The last error, -ENOENT where there is none. */
int aside_empty(const char *trash);

#endif
