/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies (RFC 9112, 6 and 7): by length, chunked, until the end of the connection. */
#include <errno.h>

#include "proto/http1.h"

#define MAX_SIZE_DIGITS 15    /* of a chunk's size, hexadecimal: far below 2^63 */
#define MAX_EXTENSION   16384 /* of all chunk extensions of a body: none is passed on */

enum state {
	SIZE,      /* digits of a chunk's size */
	EXTENSION, /* behind ';', to the end of the line */
	SIZE_LF,   /* the line's LF */
	DATA,
	DATA_CR, /* the end of line behind a chunk */
	DATA_LF,
	TRAILER,
};

static int refuse(struct http1_body *body, const char *why)
{
	body->fault = (struct http1_fault){.status = 400, .why = why};
	return -EBADMSG;
}

void http1_body_init(struct http1_body *body, const struct http1_head *head)
{
	*body = (struct http1_body){.framing = head->framing};
	if (body->framing == HTTP1_LENGTH)
		body->left = head->length;
	body->ended = body->framing == HTTP1_NO_BODY ||
	              (body->framing == HTTP1_LENGTH && body->left == 0);
}

void http1_body_done(struct http1_body *body)
{
	str_done(&body->trailer);
	*body = (struct http1_body){.ended = true};
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 32) >= 'a' && (c | 32) <= 'f')
		return (c | 32) - 'a' + 10;
	return -1;
}

static int read_size(struct http1_body *body, char c)
{
	int digit = hex_digit(c);

	if (digit >= 0) {
		if (++body->digits > MAX_SIZE_DIGITS)
			return refuse(body, "a chunk's size is too large");
		body->left = body->left << 4 | (unsigned)digit;
		return 0;
	}
	if (!body->digits || (c != ';' && c != '\r'))
		return refuse(body, "a chunk's size is not a hexadecimal number");
	body->state = c == ';' ? EXTENSION : SIZE_LF;
	return 0;
}

static int read_extension(struct http1_body *body, char c)
{
	if (c == '\r') {
		body->state = SIZE_LF;
		return 0;
	}
	if (((unsigned char)c < ' ' && c != '\t') || c == 0x7f)
		return refuse(body, "a chunk's extension holds a control character");
	if (++body->extension > MAX_EXTENSION)
		return refuse(body, "the chunk extensions are too long");
	return 0;
}

/* Lines are kept as they come: only CR LF ends one, and an empty one ends the section. */
static int read_trailer(struct http1_body *body, char c)
{
	struct str *t = &body->trailer;
	bool after_cr = t->len && t->p[t->len - 1] == '\r';

	if ((c == '\n') != after_cr)
		return refuse(body, "a line of the trailer does not end in CR LF");
	if (((unsigned char)c < ' ' && c != '\t' && c != '\r' && c != '\n') || c == 0x7f)
		return refuse(body, "the trailer holds a control character");
	if (t->len >= HTTP1_MAX_HEAD)
		return refuse(body, "the trailer is longer than 64 KiB");
	str_putc(t, c);
	if (c == '\n' && (t->len == 2 || (t->len >= 4 && t->p[t->len - 3] == '\n')))
		body->ended = true;
	return 0;
}

static int read_end_of_line(struct http1_body *body, char c, char want, enum state next)
{
	if (c != want)
		return refuse(body, "a chunk does not end in CR LF");
	body->state = (unsigned char)next;
	return 0;
}

static int read_mark(struct http1_body *body, char c)
{
	switch ((enum state)body->state) {
	case SIZE:
		return read_size(body, c);
	case EXTENSION:
		return read_extension(body, c);
	case SIZE_LF:
		body->digits = 0;
		return read_end_of_line(body, c, '\n', body->left ? DATA : TRAILER);
	case DATA_CR:
		return read_end_of_line(body, c, '\r', DATA_LF);
	case DATA_LF:
		return read_end_of_line(body, c, '\n', SIZE);
	case TRAILER:
		return read_trailer(body, c);
	case DATA:
		break;
	}
	return -EBADMSG;
}

static long take_data(struct http1_body *body, struct slice in, struct slice *ret_data)
{
	size_t n = body->framing == HTTP1_UNTIL_CLOSE || in.len < body->left ? in.len
	                                                                     : (size_t)body->left;

	*ret_data = (struct slice){.p = in.p, .len = n};
	if (body->framing != HTTP1_UNTIL_CLOSE)
		body->left -= n;
	return (long)n;
}

static long read_chunked(struct http1_body *body, struct slice in, struct slice *ret_data)
{
	size_t i = 0;

	while (i < in.len && !body->ended) {
		int r;

		if (body->state == DATA) {
			struct slice rest = {.p = in.p + i, .len = in.len - i};

			i += (size_t)take_data(body, rest, ret_data);
			if (!body->left)
				body->state = DATA_CR;
			break;
		}
		r = read_mark(body, in.p[i++]);
		if (r < 0)
			return r;
	}
	return (long)i;
}

long http1_body_read(struct http1_body *body, struct slice in, struct slice *ret_data)
{
	long n;

	*ret_data = (struct slice){.p = in.p};
	if (body->ended || !in.len)
		return 0;
	if (body->framing == HTTP1_CHUNKED)
		return read_chunked(body, in, ret_data);
	n = take_data(body, in, ret_data);
	body->ended = body->framing == HTTP1_LENGTH && !body->left;
	return n;
}

int http1_body_eof(struct http1_body *body)
{
	if (body->framing == HTTP1_UNTIL_CLOSE)
		body->ended = true;
	return body->ended ? 0 : -EPIPE;
}
