/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a preview just now, as the store has it. Blocks: for a worker. */
#ifndef SERVER_PREVIEW_LOOK_H
#define SERVER_PREVIEW_LOOK_H

#include "server/preview.h"
#include "server/server.h"
#include "util/err.h"

struct preview_sight {
	bool is_there;
	struct preview preview;
	char state[16]; /* of its sandbox: "running", ... */
	bool key_stands;
};

/* key: of a pass, may be "". -ENOENT is no failure: then it is not there. */
int preview_look(struct server *server, const char *id, const char *key,
	struct preview_sight *ret_sight, struct err *err);

/* Spends a token for a preview: the key that it was made with, which may see it. -ENOENT: it is not good, or no more. */
int preview_look_spend(struct server *server, const struct preview *preview, const char *token,
	char ret_key[ID_SIZE], struct err *err);

/* A stream to the port inside that a preview shows: a descriptor, the caller's. from: who comes. -EBUSY: the sandbox is
 * paused; -ECONNREFUSED: nobody listens there; -EHOSTUNREACH: nothing of the sandbox runs; -EOPNOTSUPP: it has no network;
 * others: not now. */
int preview_look_reach(
	struct server *server, const struct preview *preview, const char *from, struct err *err);

/* Removes those of a sandbox that has ended; the audit log says why. Where two replicas do it, one does. */
void preview_look_sandbox_ended(struct server *server, const char *account, const char *sandbox);
/* The same of all sandboxes: what was not done when a server was killed. */
void preview_look_tidy(struct server *server);

#endif
