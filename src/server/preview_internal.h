/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of previews that show them (preview_*.c, previews.c) know of each other. One thread, the loop's, but for what
 * jobs do on a worker. */
#ifndef SERVER_PREVIEW_INTERNAL_H
#define SERVER_PREVIEW_INTERNAL_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <openssl/ssl.h>

#include "proto/http1.h"
#include "server/http_internal.h"
#include "server/preview_look.h"
#include "server/preview_pass.h"
#include "server/previews.h"
#include "server/workers.h"
#include "util/map.h"

#define PREVIEW_CONNS_MAX 8192 /* of a server */
#define PREVIEW_CONNS_OF  256  /* of one preview */

struct preview_conn;
struct preview_job;

struct previews {
	struct server *server;
	struct preview_place place;
	char *domain;
	struct workers *
		workers; /* of their own: who waits for a sandbox keeps nobody of the API waiting */
	struct listener *listener;
	struct preview_conn *first;
	size_t n_conns;
	struct map *known; /* preview and key to a struct preview_known */
	struct event *timer;
	bool is_looking; /* at all that are known; one look at a time */
	bool looks_again;
	bool is_ending;
};

enum preview_state {
	PREVIEW_IDLE,      /* between requests */
	PREVIEW_HEAD,      /* some of one has come */
	PREVIEW_ASKING,    /* a worker looks at what is there, or reaches inside */
	PREVIEW_PASSING,   /* a request goes in, its answer comes out */
	PREVIEW_TUNNEL,    /* bytes both ways */
	PREVIEW_CLOSING,   /* the last bytes go out */
	PREVIEW_LINGERING, /* they are out; what still comes is thrown away */
};

/* One browser's connection, and the one inside that its requests take: nobody else's ever go there. */
struct preview_conn {
	struct previews *all;
	struct preview_conn *prev, *next;
	struct bufferevent *client, *inside; /* inside NULL: none */
	struct event *deadline;
	struct http_peer peer;
	enum preview_state state;
	int64_t active_ns;
	size_t scanned, lingered;
	bool is_over; /* freed when the callback that noticed ends */
	bool is_left; /* of a tunnel: by the browser, and the last of it goes in */
	bool is_last; /* close behind this answer */
	bool lingers; /* more of the request may be on its way */
	struct preview_job *job;

	/* the request */
	struct str head_bytes;
	struct http1_head head;
	struct http1_body body;
	char id[ID_SIZE]; /* the preview that is asked; "" none yet */
	struct preview_pass pass;
	bool has_pass;

	/* what it may see, as it was judged last */
	struct preview preview;
	char key[ID_SIZE]; /* of its pass; "": it has none, and what it sees is public */

	/* the one inside, and its answer */
	char inside_id[ID_SIZE];
	bool is_used;       /* it has answered before, so it may have been closed just now */
	bool may_try_again; /* nothing was lost of the request if it was */
	bool takes_no_more; /* of the request's body */
	bool is_ended, is_cut;
	size_t answer_scanned;
	struct str answer_bytes;
	struct http1_head answer;
	struct http1_body answer_body;
	bool has_answer;
	unsigned n_informational;
	enum http1_framing framing; /* of the answer, to the client */
};

/* ---- previews.c ---- */

/* What is known of a preview and a key no longer than a second ago; NULL: ask preview_look(), and tell it here. */
const struct preview_sight *previews_known(
	struct previews *previews, const char *id, const char *key);
void previews_learn(struct previews *previews, const char *id, const char *key,
	const struct preview_sight *sight);

/* ---- preview_conn.c ---- */

/* For listener_new(); ctx: the previews. */
void preview_conn_add(void *ctx, int fd, SSL_CTX *tls, const struct http_peer *peer);
void preview_conn_drop(struct preview_conn *conn); /* closes at once */
void preview_conn_settle(
	struct preview_conn *conn); /* what a callback ends with: drops one that is over */
void preview_conn_set_state(struct preview_conn *conn, enum preview_state state);
void preview_conn_drop_inside(struct preview_conn *conn);
/* Answers with a page of ours, instead of whatever is inside. */
void preview_conn_say(
	struct preview_conn *conn, unsigned status, const char *title, const char *text);
/* Answers with a whole head that ends in an empty line. */
void preview_conn_answer(struct preview_conn *conn, const struct str *bytes);
/* The answer is on its way: on to the next request, or to the end. */
void preview_conn_answered(struct preview_conn *conn);

/* ---- preview_door.c ---- */

/* A whole head has come: who asks for what? Ends in preview_pipe_begin(), or an answer of ours. */
void preview_door_enter(struct preview_conn *conn);
/* Through the door again, for another connection inside. */
void preview_door_reach(struct preview_conn *conn);
void preview_door_forget(struct preview_conn *conn); /* its job ends for nobody */
/* Whether it may go on to see what it sees, as things are now. */
bool preview_door_still(
	const struct preview_conn *conn, const struct preview_sight *sight, int64_t now_s);

/* ---- preview_pipe.c ---- */

void preview_pipe_begin(struct preview_conn *conn); /* conn->inside is there */
void preview_pipe_pass(struct preview_conn *conn);  /* whatever can be passed on, both ways */
void preview_pipe_on_inside_event(struct preview_conn *conn, short what);
void preview_pipe_on_client_end(struct preview_conn *conn);

#endif
