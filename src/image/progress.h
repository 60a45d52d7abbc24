/* SPDX-License-Identifier: Apache-2.0 */
/* One line on a terminal while long work is done, and the wish to stop it. */
#ifndef IMAGE_PROGRESS_H
#define IMAGE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Turned on where stderr is a terminal and nobody asked for quiet. */
void progress_begin(bool is_on);
/* "WHAT 12.3 MB of 45.6 MB"; total 0: not known. At most some times a second. */
void progress_show(const char *what, uint64_t done, uint64_t total);
/* Takes the line away. */
void progress_clear(void);

/* From here on SIGINT, SIGTERM and SIGHUP only leave a mark, so that what is half done is removed. */
void progress_catch_signals(void);
/* Whether one came: whoever waits asks this when a call was interrupted. */
bool progress_is_stopped(void);
int progress_stop_signal(void);

#endif
