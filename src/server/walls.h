/* SPDX-License-Identifier: Apache-2.0 */
/* What this process gives up, for good: it faces the network, so whoever takes it over is to find little. That it has no
 * right and gets none is the launcher's doing; docs/security.md says it all. */
#ifndef SERVER_WALLS_H
#define SERVER_WALLS_H

#include "util/err.h"

/* First thing, with one thread: nobody looks into it, it leaves no core, and it writes, makes and removes files in its folder
 * and in that of a database in a file (place is as store_open() has it) alone, starts no program. 0 also where the
 * kernel has no Landlock: then the files' own modes say where. */
int walls_begin(const char *state_dir, const char *place, struct err *err);

/* Once it is ready, for all its threads: the system calls that it may make (walls.c). place: as above. */
int walls_close(const char *place, struct err *err);

#endif
