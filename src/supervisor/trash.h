/* SPDX-License-Identifier: Apache-2.0 */
/* What a removed sandbox leaves on disk, removed when nobody waits.
 *
 * Removing a folder can cost a wait for the disk each (a discard), and even an empty layer has a dozen: more
 * than all the rest of a short run. So a small leftover is moved aside in one rename, and the next sandbox's
 * supervisor, while its command runs, or gc removes it. A large one goes at once: it is the agent's data. It is moved
 * aside before, too: its lock goes with it, so nobody takes a folder that is half gone for one without an owner. */
#ifndef SUPERVISOR_TRASH_H
#define SUPERVISOR_TRASH_H

#include "supervisor/loop.h"

/* Takes a sandbox's folder away, by moving it to <state>/trash, and removes it there now or, where it is small, later. */
int trash_remove(const char *state_dir, const char *dir, const char *id);

/* Empties <state>/trash some time after the sandbox has started, in a thread of its own. */
struct trash_sweep;
struct trash_sweep *trash_sweep_new(struct loop *loop, const char *state_dir);
void trash_sweep_free(struct trash_sweep *sweep); /* what is not swept yet stays for the next */

#endif
