/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers want of the launcher, in their words. All block and are for a worker. */
#ifndef SERVER_LAUNCHER_ASK_H
#define SERVER_LAUNCHER_ASK_H

#include "server/call.h"
#include "util/id.h"

/* A connection to the supervisor of a sandbox: a descriptor, the caller's. -ENOTCONN where none lives; one that
 * was killed is mended first. */
int launcher_ask_connect(struct server *server, const char *sandbox, struct err *err);
/* The same, as a client. */
struct client;
int launcher_ask_client(
	struct call *call, const char *sandbox, struct client **ret_client, struct err *err);
/* Asks that supervisor something about a thing of it, {key: value}: -ESRCH and the like with its sentence. *ret_answer (may
 * be NULL) is the caller's. */
struct launcher_question {
	const char *sandbox, *request, *key, *value;
};
int launcher_ask_supervisor(struct call *call, const struct launcher_question *question,
	json_t **ret_answer, struct err *err);
/* That we are ready, or done with what the launcher told (launcher_told.h); why: it is of no use, and why not; or NULL. */
int launcher_ask_ready(struct server *server, const char *why, struct err *err);
/* After its supervisor is gone: has its record ended, with rows for what was cut off. 0 also where there was nothing to do. */
int launcher_ask_mend(struct server *server, const char *sandbox, struct err *err);
/* Makes a sandbox of a spec for who calls; its id. hidden: network_use.h. */
int launcher_ask_create(struct call *call, const json_t *spec, const json_t *hidden,
	char ret_id[ID_SIZE], struct err *err);
/* Gives a living sandbox other rules: {net, allow, deny}. */
int launcher_ask_net_rules(
	struct call *call, const char *sandbox, const json_t *rules, struct err *err);

/* Has what changes below an absolute path told as lines to out_fd, a pipe's: those of `cloche watch-files --bounds`. is_patient: the
 * path need not be there yet. 0 once that is under way; whether the path is good is told by the first lines. It ends with the pipe. */
struct launcher_watch {
	const char *sandbox;
	struct slice path;
	bool is_patient;
	int out_fd;
};
int launcher_ask_watch(struct server *server, const struct launcher_watch *watch, struct err *err);
/* Another upstream proxy: url without credentials, NULL: none; hidden as in network_use.h, may be NULL. */
int launcher_ask_net_proxy(struct call *call, const char *sandbox, const char *url,
	const json_t *hidden, struct err *err);

/* Runs a verb of the launcher's table. stdout_fd: where it prints, -1: into *ret_output (may be NULL; the caller's). Its
 * exit status, or negative where it failed, with what it said. */
struct launcher_verb {
	const char *verb, *sandbox;
	const char *const *options; /* end with NULL; may be NULL */
	const char *const *words;
	const json_t *hidden; /* for those that take it (network_use.h); may be NULL */
	int stdout_fd;
};
int launcher_ask_verb(
	struct call *call, const struct launcher_verb *verb, char **ret_output, struct err *err);

/* Writes a line of the audit journal, of which the store gets a row now or later. sandbox, detail may be NULL. A call without an exchange is the
 * server's own. */
int launcher_ask_audit(struct call *call, const char *act, const char *object, const char *sandbox,
	const char *detail, struct err *err);
/* The journal, to be read: a descriptor, the caller's. -ENOENT: nothing was entered yet. */
int launcher_ask_journal(struct server *server, struct err *err);
/* What the ledger says of records of ours that were removed: an object, the caller's, with an {actor, detail} for each of
 * those n (at most 1,000) of which it does. */
int launcher_ask_removed(struct server *server, const char *const *ids, size_t n,
	json_t **ret_removed, struct err *err);

#endif
