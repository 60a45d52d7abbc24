/* SPDX-License-Identifier: Apache-2.0 */
/* Places in a journal's file by the numbers of its events, in whose order its lines stand. */
#ifndef RECORD_JOURNAL_SEEK_H
#define RECORD_JOURNAL_SEEK_H

#include "record/lines.h"

/* Looks by halves: the next line is one before the first event from seq on, by some lines at most. 0, also where there is no
 * file, or a negative errno. */
int journal_seek(struct lines *lines, uint64_t seq);
/* The number of the first event: 1; 0: there is none; or a negative errno. The next line is any. */
int journal_seek_first(struct lines *lines, uint64_t *ret_seq);

#endif
