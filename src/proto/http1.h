/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.0 and 1.1 (RFC 9110, 9112) as bytes: heads and bodies in, heads and chunks out.
 *
 * Strict on purpose. What two readers could take in two ways is refused: a line that ends in LF alone, a
 * folded field, a space before the colon, control characters, two lengths (equal ones too), a length beside
 * chunked, codings other than chunked, chunk sizes with anything but hexadecimal digits. What is read is
 * written anew from its parts, never passed on as it came.
 *
 * A head is read whole, from one buffer that the caller keeps while it uses the slices; a body is read as it
 * comes, in pieces of any size. */
#ifndef PROTO_HTTP1_H
#define PROTO_HTTP1_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"
#include "util/str.h"

#define HTTP1_MAX_HEAD   65536
#define HTTP1_MAX_FIELDS 256

struct http1_field {
	struct slice name, value; /* value without the white space around it */
};

/* Why something was refused: the status that says so to a client, and a sentence without a final stop. */
struct http1_fault {
	unsigned status;
	const char *why;
};

enum http1_framing {
	HTTP1_NO_BODY,
	HTTP1_LENGTH,
	HTTP1_CHUNKED,
	HTTP1_UNTIL_CLOSE, /* responses only */
};

struct http1_head {
	struct slice method, target; /* of a request */
	unsigned status;             /* of a response */
	struct slice reason;         /* of a response; may be empty */
	unsigned minor;              /* HTTP/1.minor */
	struct http1_field *fields;  /* in the order they came */
	size_t n_fields;
	enum http1_framing framing;
	bool has_length;
	uint64_t length;      /* where has_length; also where no body follows (HEAD, 304) */
	struct slice host;    /* the Host field; p is NULL where there is none */
	struct slice upgrade; /* the Upgrade field, where Connection names it too */
	bool keep_alive;      /* the connection can be used again, as far as this side says */
	bool expects_continue;
};

/* Looks for the end of a head in what has come so far: the whole head's length, 0 where more is needed,
 * -EBADMSG or -EMSGSIZE with *ret_fault set. *scanned is 0 for a new head and kept between calls, so that a
 * head that comes byte by byte costs no more. Characters that no head may hold are found here, early. */
long http1_find_end(struct slice in, size_t *scanned, struct http1_fault *ret_fault);

/* Read a head of exactly the length that http1_find_end() gave. 0, or -EBADMSG with *ret_fault set.
 * Slices point into in. http1_head_done() lets go of the fields. A response is read against the method it
 * answers. */
int http1_read_request(struct slice in, struct http1_head *ret_head, struct http1_fault *ret_fault);
int http1_read_response(struct slice in, struct slice method, struct http1_head *ret_head,
	struct http1_fault *ret_fault);
void http1_head_done(struct http1_head *head);

/* Field names are compared without regard to case. p is NULL where there is none; the first of several. */
struct slice http1_find(const struct http1_head *head, const char *name);
bool http1_is(struct slice text, const char *word); /* without regard to case */
/* The next element of a comma-separated list, trimmed; false at the end. *rest is moved on. */
bool http1_next_element(struct slice *rest, struct slice *ret_element);
bool http1_has_token(struct slice list, const char *token);
bool http1_is_token(struct slice text); /* RFC 9110 5.6.2, not empty */

/* "example.org:8080", "[::1]" to their parts; brackets are taken off, *ret_port is 0 where there is none.
 * -EINVAL where it is neither a name nor an address: user names, spaces, percent signs, an empty name. */
int http1_split_host(struct slice text, struct slice *ret_host, uint16_t *ret_port);
/* An absolute-form target, http or https, to its parts; the path begins with '/' or is empty. -EINVAL. */
int http1_split_absolute(struct slice target, struct slice *ret_scheme, struct slice *ret_authority,
	struct slice *ret_path);

/* The body behind a head. */
struct http1_body {
	enum http1_framing framing;
	unsigned char state;
	bool ended;
	unsigned digits;          /* of the chunk's size */
	size_t extension;         /* bytes of chunk extensions so far */
	uint64_t left;            /* of the length, or of the chunk */
	struct str trailer;       /* the trailer fields' lines, to be read at the end */
	struct http1_fault fault; /* where reading failed */
};

void http1_body_init(struct http1_body *body, const struct http1_head *head);
void http1_body_done(struct http1_body *body);
/* Reads from in: the number of bytes used, of which *ret_data (a part of in, perhaps empty) is body. Call
 * again with the rest. 0 only when the body has ended or in is empty; -EBADMSG with body->fault set. */
long http1_body_read(struct http1_body *body, struct slice in, struct slice *ret_data);
/* End of file came: 0 where that ends the body properly, else -EPIPE. */
int http1_body_eof(struct http1_body *body);
/* The trailer fields of a chunked body that has ended, as a head that has nothing but fields. */
int http1_body_trailers(
	const struct http1_body *body, struct http1_head *ret_head, struct http1_fault *ret_fault);

/* Writing. What goes in was read by the functions above or is the caller's own plain text. */
void http1_add_request(struct str *out, struct slice method, struct slice target, unsigned minor);
void http1_add_status(struct str *out, unsigned status, struct slice reason, unsigned minor);
void http1_add_field(struct str *out, struct slice name, struct slice value);
void http1_add_end(struct str *out);                      /* the empty line */
void http1_add_chunk(struct str *out, struct slice data); /* nothing for empty data */
void http1_add_last_chunk(struct str *out); /* trailer fields and http1_add_end() follow */

#endif
