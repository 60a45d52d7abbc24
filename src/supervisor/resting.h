/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox between two lives, or after its only one with --keep: nothing of it runs, its files stay in its folder
 * with rest.json (control/rest.h) beside them.
 *
 * Order matters, since a kill may come anywhere. Going to rest: rows and events to the disk, files to the disk,
 * rest.json, then the event and the seal that say so. Without rest.json it was killed, as at any other time; with it,
 * it rests, and a mender adds what the record lacks. Going on: rest.json goes once all stands and before the first
 * command. */
#ifndef SUPERVISOR_RESTING_H
#define SUPERVISOR_RESTING_H

#include "supervisor/supervisor_internal.h"

/* Finds out whether this is one that goes on: sup->before. A new one has none. */
int resting_find(struct supervisor *sup, struct err *err);
/* Opens the record again, and has it signed as open from here on. */
int resting_open_record(
	struct supervisor *sup, const struct record_config *config, int seal_fd, struct err *err);
/* It is in order again, one way or the other. */
void resting_settle(const char *dir);
/* It runs again: rest.json goes. */
int resting_leave(struct supervisor *sup, struct err *err);

/* Nothing runs any more, and its record still stands open. The sandbox is freed; its files stay, on the disk. */
int resting_enter(struct supervisor *sup, bool is_over, struct err *err);

#endif
