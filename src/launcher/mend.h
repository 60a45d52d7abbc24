/* SPDX-License-Identifier: Apache-2.0 */
/* Takes up what supervisors left that were killed: their records get an end that is marked as cut, their boxes
 * and folders go. `cloche gc`, and a short look at each start. */
#ifndef LAUNCHER_MEND_H
#define LAUNCHER_MEND_H

#include <stddef.h>

#include "util/err.h"

/* Looks at most at max_looked folders (0: all). Returns how many sandboxes were mended; a failure with one goes
 * on with the next and is the one returned. */
int mend_all(const char *state_dir, const char *run_dir, size_t max_looked, struct err *err);

/* The same for one sandbox. 1, or 0 where there was nothing to mend. -ENOSPC where it failed on a full disk: nothing of
 * it runs any more then. */
int mend_sandbox(const char *state_dir, const char *run_dir, const char *id, struct err *err);

/* The short look at each start: a few folders, and silence about what cannot be mended now. */
void mend_look(const char *state_dir, const char *run_dir);

#endif
