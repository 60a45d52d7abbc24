/* SPDX-License-Identifier: Apache-2.0 */
/* One request and what came of it, for every version of HTTP: where it leads, whether it may, what is told of it
 * in the end. Bytes on a wire are the machines' part. */
#ifndef GATEWAY_HTTP_TURN_H
#define GATEWAY_HTTP_TURN_H

#include "gateway/http_copy.h"
#include "gateway/http_machine.h"
#include "gateway/secrets.h"
#include "util/str.h"

/* Rules of their own, as people read them. */
#define HTTP_TURN_UNREADABLE "unreadable HTTP"
#define HTTP_TURN_TUNNELS    "no tunnels"

#define HTTP_TURN_NO_TUNNEL \
	"Tunnels through another host are not passed on. Connect to the host itself: what the " \
	"rules allow is " \
	"reachable directly, without a proxy"

struct http_turn {
	const struct http_setup *setup;
	const char *protocol;
	/* The request; slices are the machine's, valid as long as the turn. */
	struct slice method, scheme;
	struct str authority, host, path, url; /* NUL behind each; host as in struct http_request */
	bool has_host, is_connect;
	uint16_t port;
	const struct http1_field *fields;
	size_t n_fields;
	bool has_length;
	uint64_t length;
	struct http_copy sent;
	/* The answer. */
	unsigned status;
	const struct http1_field *response_fields;
	size_t n_response_fields;
	bool response_has_length;
	uint64_t response_length;
	struct http_copy got;
	int64_t started_ns;
	const char *upgrade, *error;
	/* Secrets: masks of those that may go there, of those put in, of those whose stand-in may go there in
	 * the body, of those whose did. */
	uint64_t bound, used, passing, passed;
	struct secrets_stream out,
		back; /* the bodies; back.back: those whose values may be in the answer */
	struct http_answer answer; /* where it was refused */
	bool refused;              /* or failed: the gateway answers */
	bool reported;
};

void http_turn_init(struct http_turn *turn, const struct http_setup *setup, const char *protocol);
void http_turn_done(struct http_turn *turn);

/* Where it leads. authority: the Host field or :authority, p NULL where there is none; an absolute target's own
 * authority goes before it. scheme: NULL for that of the flow. -EBADMSG with *ret_fault. */
int http_turn_address(struct http_turn *turn, struct slice authority, struct slice target,
	struct http1_fault *ret_fault);
/* Asks whether it may go on, with method, fields and address set. False: it was refused, and that was told. */
bool http_turn_judge(struct http_turn *turn);
/* The same for one that is under way, since other rules are in force. False: it was reported, and refused. */
bool http_turn_judge_again(struct http_turn *turn);
/* Part of it (http_turn_secrets.c): which secrets may go there, and whether others are about to. */
int http_turn_bind(struct http_turn *turn);
/* Refuses it, and tells. */
void http_turn_refuse(
	struct http_turn *turn, unsigned status, const char *rule, const char *reason);
/* It went wrong on the way: tells of it as an exchange with this error, and prepares the document. */
void http_turn_fail(struct http_turn *turn, unsigned status, const char *why);
/* What goes on of a field's value and of the path: values in the place of stand-ins. For an answer's bytes the
 * other way, in place, before they are read. */
bool http_turn_has_secrets(const struct http_turn *turn); /* else nothing is changed */
void http_turn_put_field(
	struct http_turn *turn, struct slice name, struct slice value, struct str *out);
void http_turn_put_path(struct http_turn *turn, struct str *out);
void http_turn_put_back(const struct http_turn *turn, char *p, size_t len);
/* What goes on of a body: *ret_data is data itself or, where something had to be changed, in scratch, which is
 * overwritten. Keeps a copy as the program inside knows it. The end is told once. -EACCES, for the request's: a
 * stand-in is on its way to where it must not go; that was told, and nothing of it may be sent. */
int http_turn_send(
	struct http_turn *turn, struct slice data, struct str *scratch, struct slice *ret_data);
int http_turn_send_end(struct http_turn *turn, struct str *scratch, struct slice *ret_data);
void http_turn_receive(
	struct http_turn *turn, struct slice data, struct str *scratch, struct slice *ret_data);
void http_turn_receive_end(struct http_turn *turn, struct str *scratch, struct slice *ret_data);
/* -EACCES as above, for bytes that go on as they are, and for trailer fields. */
int http_turn_watch(struct http_turn *turn, struct slice data);
int http_turn_check_fields(struct http_turn *turn, const struct http1_field *fields, size_t n);
/* The document for a refused or failed one. */
void http_turn_problem(const struct http_turn *turn, struct str *out);
/* Bytes of memory, about. */
size_t http_turn_holds(const struct http_turn *turn);
/* Tells what came of it, once; refused ones were told already. */
void http_turn_report(struct http_turn *turn);

#endif
