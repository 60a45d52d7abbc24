/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP between a program inside and a server, as a machine (machine.h): reads both sides strictly, asks about
 * each request, writes anew what it lets through, and tells what an exchange was.
 *
 * http_machine_new() speaks HTTP/1.0 and 1.1 and, after an upgrade that both sides agree to, WebSocket frames.
 * h2_machine_new() (h2_machine.h) speaks HTTP/2. Which one a flow needs: what ALPN chose, or http_sniff().
 *
 * One exchange is under way at a time on HTTP/1: what a client sends ahead stays in its socket. Bodies stream
 * through one bounded buffer a direction. A refused request is answered with a problem document
 * (RFC 9457), and the connection kept where the request's end is near, else closed in order: the machine then
 * wants the end of both sides and takes and drops what still comes, so whoever owns the sockets should wait a
 * moment for the client's end before it closes.
 *
 * Upgrades other than WebSocket are refused (h2c is left out of the request, as any server may), and so is
 * CONNECT, after its target was asked about. */
#ifndef GATEWAY_HTTP_MACHINE_H
#define GATEWAY_HTTP_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/machine.h"
#include "proto/http1.h"
#include "util/slice.h"

/* What is asked about before anything of it goes on. */
struct http_request {
	struct slice method;
	struct slice
		scheme;   /* "http", "https": how the flow came; of an absolute target, its own */
	const char *host; /* lower case, no brackets, no final dot; NULL: HTTP/1.0 without one */
	uint16_t port;    /* 0: not named */
	const char *path; /* with its query, as it was sent; "" for CONNECT */
	const char *url;  /* whole */
	bool is_connect;  /* host and port are where the tunnel would lead */
	const struct http1_field *fields;
	size_t n_fields;
};

/* Zeroed: let through. */
struct http_answer {
	uint64_t
		told; /* secrets that whoever answers may know under other names than the request's and the flow's */
	bool refuse;
	unsigned status; /* of the document; 0: 403 */
	char rule[192];
	char reason[512]; /* a sentence for an agent */
};

struct http_refusal {
	struct slice method;
	const char *host, *url; /* as in http_request; NULL where the request could not be read */
	uint16_t port;
	unsigned status;
	const char *
		rule; /* "protocol" for what is no good HTTP, "secret" for a stand-in that leads elsewhere */
	const char *reason;
};

/* What is known of a body, or of a WebSocket message. */
struct http_copy_view {
	bool kept;          /* bytes were asked for */
	struct slice bytes; /* its first ones */
	struct slice tail;  /* where it is truncated: of the rest, the last ones */
	bool truncated;     /* there were more than the first ones */
	uint64_t seen;      /* bytes of it that came */
	bool whole;         /* it was seen to its end; sha256 is set where kept */
	char sha256[65];
};

struct http_exchange {
	const char *protocol; /* "http/1.1", "h2" */
	struct slice method;
	const char *url, *host; /* as in http_request */
	uint16_t port;
	const struct http1_field *fields; /* with stand-ins, never values */
	size_t n_fields;
	bool has_length;
	uint64_t length; /* declared */
	struct http_copy_view body;
	unsigned status; /* 0: there was no answer */
	const struct http1_field *response_fields;
	size_t n_response_fields;
	bool response_has_length;
	uint64_t response_length;
	struct http_copy_view response_body;
	int64_t started_ns, duration_ns;
	const char *upgrade;        /* "websocket"; NULL */
	const char *const *secrets; /* names of those put in */
	size_t n_secrets;
	const char *const *stand_ins; /* names of those whose stand-in the body took along */
	size_t n_stand_ins;
	const char *error; /* NULL: it ended as it should */
};

struct http_message { /* of a WebSocket */
	const char *url;
	enum machine_side from;
	int opcode;      /* of its first frame */
	bool compressed; /* permessage-deflate: the bytes are as they came */
	struct http_copy_view body;
	const char *error; /* NULL: it came to its end */
};

struct http_misuse {
	const char *name,
		*host; /* of the secret; where its stand-in was to go (NULL as in http_request) */
	uint16_t port;
	const char *where; /* "header", "body", "url" */
};

/* Called from within the machine's operations; what they get is borrowed for the call. None may call the machine
 * back. All are needed. */
struct http_hooks {
	int64_t (*now_ns)(void *arg);
	void (*judge)(
		void *arg, const struct http_request *request, struct http_answer *ret_answer);
	void (*on_refused)(
		void *arg, const struct http_refusal *refusal); /* judge's refusals too */
	void (*on_exchange)(void *arg, const struct http_exchange *exchange);
	void (*on_message)(void *arg, const struct http_message *message);
	void (*on_misuse)(void *arg, const struct http_misuse *misuse);
};

struct secrets;

struct http_setup {
	bool tls;           /* URLs begin with https */
	bool verified;      /* the server's certificate was found good: values may go there */
	bool keeps_no_body; /* nor message: only how long they are */
	/* What led here, in lower case; where `verified`, whose certificate it is. NULL: none */
	const char *name;
	const char *address;   /* numeric: stands for the name where there is none */
	uint16_t port;         /* that the client dialled */
	bool record_responses; /* else only those of known model APIs */
	size_t body_limit;     /* bytes kept of a body */
	size_t *spare; /* shared by all flows: bytes that copies of model APIs' bodies and wide windows may
			  take on top; NULL: none */
	const struct secrets *secrets; /* NULL: none */
	const struct http_hooks *hooks;
	void *arg;
};

/* Copies the setup, not what it points to: that outlives the machine. */
void http_machine_new(const struct http_setup *setup, struct machine *ret_machine);

enum http_kind {
	HTTP_KIND_MORE, /* too little to say */
	HTTP_KIND_HTTP1,
	HTTP_KIND_HTTP2, /* the preface of RFC 9113, 3.4 */
	HTTP_KIND_OTHER,
};
/* What a client's first bytes are. */
enum http_kind http_sniff(struct slice first);

/* Whether a server's first bytes are the frame that an HTTP/2 server may send before it has heard anything (RFC 9113,
 * 3.4), as far as they go: it is the client that says what is spoken. */
#define HTTP_GREETING 9
bool http_is_greeting(struct slice first);

/* Known model APIs: their exchanges are recorded whole, both ways. host as in http_request. */
bool http_is_model_api(const char *host);

#endif
