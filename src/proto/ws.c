/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/ws.h"

#include <errno.h>

#define BIT_FIN     0x80
#define BIT_RSV1    0x40
#define BITS_RSV23  0x30
#define BIT_MASK    0x80
#define LEN_16      126
#define LEN_64      127
#define MAX_CONTROL 125

static int refuse(struct ws_reader *r, const char *why)
{
	r->fault = why;
	return -EBADMSG;
}

/* Length of the head that begins with these two bytes. */
static size_t head_len(const unsigned char *head)
{
	size_t n = 2;

	if ((head[1] & 127) == LEN_16)
		n += 2;
	else if ((head[1] & 127) == LEN_64)
		n += 8;
	return n + (head[1] & BIT_MASK ? 4 : 0);
}

static int read_len(struct ws_reader *r, size_t *ret_at)
{
	unsigned char form = r->head[1] & 127;
	size_t n = form == LEN_16 ? 2 : form == LEN_64 ? 8 : 0;
	uint64_t len = n ? 0 : form;

	for (size_t i = 0; i < n; i++)
		len = len << 8 | r->head[2 + i];
	if ((n == 2 && len < LEN_16) || (n == 8 && len <= UINT16_MAX))
		return refuse(r, "a length is written longer than needed");
	if (len > INT64_MAX)
		return refuse(r, "a length is too large");
	r->frame.len = len;
	*ret_at = 2 + n;
	return 0;
}

static int check_opcode(struct ws_reader *r)
{
	const struct ws_frame *f = &r->frame;

	switch (f->opcode) {
	case WS_CONTINUATION:
		if (!r->in_message)
			return refuse(r, "a continuation continues nothing");
		return f->compressed ? refuse(r, "a continuation is marked compressed") : 0;
	case WS_TEXT:
	case WS_BINARY:
		return r->in_message ? refuse(r, "a message begins inside another") : 0;
	case WS_CLOSE:
	case WS_PING:
	case WS_PONG:
		if (!f->fin || f->len > MAX_CONTROL || f->compressed)
			return refuse(r, "a control frame is cut, long or compressed");
		return 0;
	}
	return refuse(r, "an opcode is unknown");
}

static int read_head(struct ws_reader *r)
{
	struct ws_frame *f = &r->frame;
	size_t at;
	int err;

	*f = (struct ws_frame){.opcode = (enum ws_opcode)(r->head[0] & 15),
		.fin = (r->head[0] & BIT_FIN) != 0,
		.compressed = (r->head[0] & BIT_RSV1) != 0,
		.masked = (r->head[1] & BIT_MASK) != 0};
	if ((r->head[0] & BITS_RSV23) || (f->compressed && !r->may_compress))
		return refuse(r, "a reserved bit is set");
	if (f->masked != r->from_client)
		return refuse(r, f->masked ? "a server's frame is masked"
					   : "a client's frame is not masked");
	err = read_len(r, &at);
	if (err == 0)
		err = check_opcode(r);
	if (err < 0)
		return err;
	if (f->masked)
		memcpy(f->key, r->head + at, sizeof(f->key));
	if (!ws_is_control(f->opcode))
		r->in_message = !f->fin;
	return 0;
}

static long read_payload(struct ws_reader *r, struct slice in, struct ws_piece *piece)
{
	uint64_t left = r->frame.len - r->done;
	size_t n = in.len < left ? in.len : (size_t)left;

	piece->at = r->done;
	piece->payload = (struct slice){.p = in.p, .len = n};
	r->done += n;
	if (r->done == r->frame.len) {
		piece->ends = true;
		r->in_payload = false;
		r->n_head = 0;
	}
	return (long)n;
}

long ws_read(struct ws_reader *r, struct slice in, struct ws_piece *ret_piece)
{
	size_t i = 0;

	*ret_piece = (struct ws_piece){0};
	if (!in.len)
		return 0;
	if (!r->in_payload) {
		int err;

		while (i < in.len && (r->n_head < 2 || r->n_head < head_len(r->head)))
			r->head[r->n_head++] = (unsigned char)in.p[i++];
		if (r->n_head < 2 || r->n_head < head_len(r->head))
			return (long)i;
		err = read_head(r);
		if (err < 0)
			return err;
		ret_piece->begins = true;
		r->in_payload = true;
		r->done = 0;
	}
	return (long)i +
	       read_payload(r, (struct slice){.p = in.p + i, .len = in.len - i}, ret_piece);
}

void ws_unmask(const struct ws_frame *frame, uint64_t at, struct slice payload, struct str *out)
{
	size_t from = out->len;

	str_add(out, payload.p, payload.len);
	if (!frame->masked)
		return;
	for (size_t i = 0; i < payload.len; i++)
		out->p[from + i] =
			(char)((unsigned char)out->p[from + i] ^ frame->key[(at + i) & 3]);
}

void ws_add_head(struct str *out, const struct ws_frame *frame)
{
	unsigned char head[WS_MAX_HEAD];
	size_t n = 2, len_bytes = frame->len < LEN_16 ? 0 : frame->len <= UINT16_MAX ? 2 : 8;

	head[0] = (unsigned char)((frame->fin ? BIT_FIN : 0) | (frame->compressed ? BIT_RSV1 : 0) |
				  (unsigned char)frame->opcode);
	head[1] = (unsigned char)(len_bytes == 2 ? LEN_16 : len_bytes == 8 ? LEN_64 : frame->len);
	if (frame->masked)
		head[1] |= BIT_MASK;
	for (size_t i = len_bytes; i > 0; i--)
		head[n++] = (unsigned char)(frame->len >> (8 * (i - 1)));
	if (frame->masked) {
		memcpy(head + n, frame->key, sizeof(frame->key));
		n += sizeof(frame->key);
	}
	str_add(out, head, n);
}
