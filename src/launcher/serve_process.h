/* SPDX-License-Identifier: Apache-2.0 */
/* The half of a control plane that faces the network: a process of a user of its own, without any right but to read the
 * records that it had made, to write its folder <state>/server, and to ask the launcher (office.h). */
#ifndef LAUNCHER_SERVE_PROCESS_H
#define LAUNCHER_SERVE_PROCESS_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "launcher/office.h"
#include "util/err.h"
#include "util/id.h"

#define SERVE_PROCESS_GIVES_UP 3 /* its exit status where starting it again would not help */
#define SERVE_PROCESS_NOT_NOW  4 /* ... where it may help later: its database is away */
#define SERVE_PROCESS_SOCKETS  10

#define SERVE_PROCESS_PASSED   4 /* the first of the sockets that settings->passed names */

struct serve_process {
	pid_t pid; /* 0: none */
	uid_t uid;
	gid_t gid;
	int office_fd; /* its requests; -1: none */
	int sockets[SERVE_PROCESS_SOCKETS];
	size_t n_sockets;
	char inside
		[ID_SIZE]; /* the name of the socket for calls from sandboxes (plane_socket.h); "": none */
	json_t *settings; /* what it is told */
	json_t *renewed; /* certificate and key that it was told of and has not taken yet; NULL: none */
	bool is_due;     /* and there are others behind them */
	time_t started_s;
};
#define SERVE_PROCESS_NONE ((struct serve_process){.office_fd = -1})

/* Opens the sockets, makes its folder, sets office->readers. settings: {listen: [TEXT], socket, previews, passed: [NAME],
 * database, tls_cert, tls_key, user, reindex}. With reindex it listens nowhere. */
int serve_process_prepare(struct serve_process *serve, struct office *office,
	const json_t *settings, struct err *err);
/* Starts it, also after one that has ended. */
int serve_process_start(struct serve_process *serve, struct err *err);
void serve_process_answer(struct serve_process *serve, const struct office *office);
/* Has it use what its certificate's and its key's files hold now: 1; it says what became of it, see below. 0 where it has no
 * TLS. Negative, with a sentence, where they cannot be read. */
int serve_process_renew(struct serve_process *serve, const json_t *settings, struct err *err);
/* It said how it is (office.h): has_taken: what is new is good, for the next start, too. 1: there is more to renew. */
int serve_process_heard(struct serve_process *serve, bool has_taken);
/* Whether it was ready once: its settings are good then, and its database was there. */
bool serve_process_was_ready(const struct serve_process *serve);
/* It was waited for: its number is somebody else's from now on. */
void serve_process_ended(struct serve_process *serve);
/* Asks it to end, answers it until it has, lets go of all. */
void serve_process_stop(struct serve_process *serve, const struct office *office);

#endif
