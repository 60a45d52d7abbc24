/* SPDX-License-Identifier: Apache-2.0 */
/* One request on its way through the server: who asks, for what, and the answer in the making.
 *
 * A handler (route.h) runs on a worker's thread and may block: it reads the call, calls one module, writes JSON to call->out
 * and returns 0. A negative errno with a sentence becomes a problem document (http_status.h says which status). What cannot
 * be answered at once (an exec, a stream) sets call->then, which goes on with the exchange on the loop. */
#ifndef SERVER_CALL_H
#define SERVER_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/exchange.h"
#include "server/role.h"
#include "server/server.h"
#include "server/workers.h"
#include "util/digest.h"
#include "util/err.h"
#include "util/id.h"
#include "util/slice.h"
#include "util/str.h"

#define CALL_PARAMS_MAX 3
#define CALL_QUERY_MAX  16

struct caller {
	enum role role;
	char account[64];
	char key[32];          /* its id; "" over the Unix socket */
	char actor[96];        /* "key:ke_...", "uid:1000", "key:ke_... in sandbox:sb_..." */
	char sandbox[ID_SIZE]; /* from which it calls; "": from outside */
	bool is_operator;      /* an admin of the account "default": of accounts, too */
};

struct call {
	struct work work;
	struct server *server;
	struct exchange *exchange;
	const struct route *route;
	struct caller caller;
	/* what asked and from where, for a time when its exchange is over */
	char method[16], peer[64];
	char *path;                    /* decoded, without the query */
	char *params[CALL_PARAMS_MAX]; /* what stands for {...} in the route, decoded */
	struct {
		char *name, *value;
	} query[CALL_QUERY_MAX];
	size_t n_query;
	bool is_admitted;                     /* key, right and query are good */
	struct call *guard_prev, *guard_next; /* guard.h */
	bool is_guarded;
	json_t *body; /* an object, where the route has one */
	/* the answer */
	unsigned status;  /* 0: 200 */
	const char *type; /* NULL: application/json */
	struct str out;
	struct str fields;               /* more lines of the head */
	const char *code;                /* of a problem, where it is not the usual one */
	void (*then)(struct call *call); /* on the loop, instead of the answer; frees the call */
	void *state;                     /* the handler's own, for then */
	/* of the request with this Idempotency-Key; NULL: none, or it is over */
	char *once_name;
	char once_hash[DIGEST_HEX_SIZE];
	int64_t once_started_ms;
	int64_t begun_ns; /* of the request; 0: it was refused before it had a route */
};

void call_free(struct call *call);
/* On a worker, once: makes the answer of what the handler said, and keeps it where the request has an idempotency key. */
void call_settle(struct call *call, int r, const struct err *err);
/* On the loop: answers with what is in the call and frees it. */
void call_send(struct call *call);
/* On the loop: both, one behind the other. */
void call_answer(struct call *call, int r, const struct err *err);

/* A query parameter; NULL where there is none. */
const char *call_query(const struct call *call, const char *name);
/* A field of the head that may come once: *ret has no p where there is none. -EINVAL where it came twice, and so who reads
 * the first would act otherwise than who reads the last. */
int call_field(const struct call *call, const char *name, struct slice *ret, struct err *err);
/* Whether Accept names this type; nothing is ranked. */
bool call_accepts(const struct call *call, const char *type);
/* true or false in the query; *ret stays where there is none. -EINVAL with a sentence. */
int call_query_bool(const struct call *call, const char *name, bool *ret, struct err *err);
/* A whole number in the query: -EINVAL with a sentence where it is none or out of bounds. */
int call_query_int(const struct call *call, const char *name, int64_t min, int64_t max,
	int64_t otherwise, int64_t *ret, struct err *err);
/* -EINVAL where the query has another parameter than these (ends with NULL). */
int call_check_query(const struct call *call, const char *const *names, struct err *err);

/* Members of the body, checked: another type, or a text with a NUL, is -EINVAL with a sentence. Absent: NULL or otherwise. */
int call_text(const struct call *call, const char *key, const char **ret, struct err *err);
int call_int(const struct call *call, const char *key, int64_t min, int64_t max, int64_t otherwise,
	int64_t *ret, struct err *err);
int call_bool(const struct call *call, const char *key, bool *ret, struct err *err);
/* Bytes, added to out: member key, a text, or key_b64, any bytes in base64. 1: it was there; 0: it was not. */
int call_bytes(const struct call *call, const char *key, struct str *out, struct err *err);
/* Such a pair by itself, one without p is not there: key names it in the sentence. */
int call_decode(
	const char *key, struct slice text, struct slice b64, struct str *out, struct err *err);
/* -EINVAL where the body has another member than these. */
int call_check_body(const struct call *call, const char *const *names, struct err *err);

#endif
