/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the HTTP/2 machine (h2_machine.h), for its own files only: h2_machine.c holds both connections and
 * their ends, h2_events.c what nghttp2 reads from either, h2_stream.c a stream, h2_body.c its bodies. */
#ifndef GATEWAY_H2_PARTS_H
#define GATEWAY_H2_PARTS_H

#include <nghttp2/nghttp2.h>

#include "gateway/h2_fields.h"
#include "gateway/h2_machine.h"
#include "gateway/http_turn.h"

#define H2_STREAMS 100         /* at once */
#define H2_WINDOW  (256 << 10) /* of a stream at first: its bytes that may wait */
#define H2_WINDOW_MAX \
	(4 << 20) /* of one that goes out as fast as it comes, as long as the shared spare lasts */
#define H2_CONN_WINDOW (1 << 20) /* of all streams of a connection, at first */
#define H2_HIGH_WATER  65536     /* bytes made ready for a side */
#define H2_THROWN      (1 << 20) /* of a request that was answered already; then it is reset */

struct h2_half { /* what a side gets of a stream */
	struct str waiting;
	size_t at;         /* of waiting, sent already */
	bool has_provider; /* nghttp2 asks for the body */
	bool deferred;     /* it asked, and there was nothing */
	bool ended;        /* nothing comes behind what waits */
	bool sent_end;
	struct h2_fields trailers;
	bool has_trailers;
	int32_t window;     /* of the stream that it comes from */
	size_t since_wider; /* bytes that went out since the window was last made wider */
	size_t owed; /* bytes that came for it, for which the sender's window was not opened again */
};

struct h2_stream {
	struct h2_machine *m;
	struct h2_stream *next, **link;
	int32_t id[MACHINE_SIDES]; /* 0: none */
	bool closed[MACHINE_SIDES];
	bool came_whole[MACHINE_SIDES]; /* what comes from there */
	struct http_turn turn;
	struct h2_fields request, response;
	struct h2_fields *block; /* that is being read: one of these or spare */
	struct h2_fields spare;  /* interim answers, trailers */
	struct h2_half to[MACHINE_SIDES];
	bool has_response; /* the final one */
	bool cut; /* bytes of the request are dropped: it was refused, or its answer is whole */
	size_t thrown; /* of them, since all of the answer went out */
};

struct h2_machine {
	struct http_setup setup;
	nghttp2_session
		*session[MACHINE_SIDES]; /* that to the server is made with the first need of it */
	struct h2_stream *streams;
	struct str out[MACHINE_SIDES];
	size_t at[MACHINE_SIDES];
	int32_t window[MACHINE_SIDES]; /* of the connection from there */
	size_t taken;                  /* of the shared spare, for wider ones */
	struct str scratch;            /* of a piece that is changed on its way */
	bool closing[MACHINE_SIDES];
	bool server_gone;
	int error;
};

/* The connection to the server; NULL where it is gone. */
nghttp2_session *h2_machine_server(struct h2_machine *m);

/* nghttp2's callbacks for the connection to a side; user data is the machine. */
int h2_events_callbacks(nghttp2_session_callbacks **ret, enum machine_side side);

/* Bodies. The sender's windows are opened again by n bytes of what came for `to`. */
void h2_body_settle(struct h2_stream *s, enum machine_side to, size_t n);
/* Adds what is to go to a side, and has nghttp2 ask for it. */
void h2_body_add(struct h2_stream *s, enum machine_side to, struct slice data);
/* Something waits that did not, or the end is there. */
void h2_body_wake(struct h2_stream *s, enum machine_side to);
/* nghttp2_data_source_read_callback, of a source that is the stream. */
ssize_t h2_body_to_client(nghttp2_session *session, int32_t id, uint8_t *buf, size_t len,
	uint32_t *flags, nghttp2_data_source *source, void *user);
ssize_t h2_body_to_server(nghttp2_session *session, int32_t id, uint8_t *buf, size_t len,
	uint32_t *flags, nghttp2_data_source *source, void *user);

struct h2_stream *h2_stream_new(struct h2_machine *m, int32_t id);
size_t h2_stream_holds(const struct h2_stream *s); /* bytes of memory, about */
void h2_stream_free(struct h2_stream *s);          /* tells what came of it */
/* The request's head is whole. last: there is no body. */
void h2_stream_request(struct h2_stream *s, bool last);
void h2_stream_response(struct h2_stream *s, bool last);
/* The block in s->spare is of trailers that came from a side. */
void h2_stream_trailers(struct h2_stream *s, enum machine_side from);
void h2_stream_data(struct h2_stream *s, enum machine_side from, struct slice data);
void h2_stream_end(struct h2_stream *s, enum machine_side from); /* of what comes from there */
void h2_stream_sent_end(struct h2_stream *s, enum machine_side to);
/* A side reset it or is done with it. */
void h2_stream_closed(struct h2_stream *s, enum machine_side side, uint32_t code);
void h2_stream_lost(struct h2_stream *s); /* the server's whole connection ended */
void h2_stream_check(
	struct h2_stream *s); /* other rules are in force: ends it where they refuse it */
void h2_stream_reset(struct h2_stream *s, enum machine_side to, uint32_t code);

#endif
