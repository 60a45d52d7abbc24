/* SPDX-License-Identifier: Apache-2.0 */
/* One exec while it runs and, where it left processes behind, after: its streams, its row, its client.
 *
 * started -> (its process ends, or the time is up) -> answered: the row is in the record before the client
 * hears of it. What still holds its pipes then is left alone and its output goes on into the record. */
#ifndef SUPERVISOR_RUNNING_H
#define SUPERVISOR_RUNNING_H

#include "supervisor/supervisor_internal.h"

/* Its processes that live: see sandbox_exec_add_processes(). */
void running_add_processes(
	const struct running *running, unsigned *left, struct gauge_processes *sum);

/* Starts one. conn (may be NULL) is attached to it: it gets {"ok":true,"exec":id}, the streams, and at the end
 * {"exec":id,"row":{...}}. Takes over *spec. On failure nothing runs, and the record says why. */
int running_start(
	struct supervisor *sup, struct conn *conn, struct spec_exec **spec, struct err *err);
void running_free(struct running *running); /* at the sandbox's end: whatever it is in */

const char *running_id(const struct running *running);
bool running_is_over(const struct running *running);      /* answered */
struct conn *running_conn(const struct running *running); /* its client; NULL */
bool running_has_conn(const struct running *running, const struct conn *conn);

/* From its client. */
void running_stdin(struct running *running, struct slice bytes); /* empty: end of file */
bool running_takes_stdin(const struct running *running);         /* its input is open */
int running_resize(struct running *running, unsigned short rows, unsigned short columns);
int running_signal(struct running *running, int signal);
/* The client has nobody to pass this stream on to (1: stdout, 2: stderr). */
void running_cut(struct running *running, int stream);
int running_kill(struct running *running);
void running_drained(struct running *running); /* the client reads again */
/* The client is gone: its input ends, the exec goes on. */
void running_detach(struct running *running);

/* Kills it and waits for its end: for the sandbox's own. */
void running_end(struct running *running);

#endif
