/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/clip.h"

#include "util/utf8.h"

#define CHARS_WHOLE 4000
#define CHARS_SIDE  2000
#define HEAD_BYTES  (CHARS_WHOLE * 4) /* a character is four bytes at most */
#define TAIL_BYTES  (CHARS_SIDE * 4)

void clip_init(struct clip *clip)
{
	*clip = (struct clip){0};
	digest_init(&clip->digest);
}

void clip_done(struct clip *clip)
{
	str_done(&clip->head);
	str_done(&clip->tail);
}

static void add_tail(struct str *tail, const char *p, size_t len)
{
	if (len >= TAIL_BYTES) {
		str_reset(tail);
		str_add(tail, p + len - TAIL_BYTES, TAIL_BYTES);
		return;
	}
	str_add(tail, p, len);
	if (tail->len <= 2 * TAIL_BYTES)
		return;
	memmove(tail->p, tail->p + tail->len - TAIL_BYTES, TAIL_BYTES);
	tail->len = TAIL_BYTES;
}

void clip_add(struct clip *clip, const void *p, size_t len)
{
	size_t room = clip->head.len < HEAD_BYTES ? HEAD_BYTES - clip->head.len : 0;
	size_t n = len < room ? len : room;

	digest_add(&clip->digest, p, len);
	clip->bytes += len;
	str_add(&clip->head, p, n);
	add_tail(&clip->tail, (const char *)p + n, len - n);
}

/* A byte that is no character counts as one, as it is shown as one. */
static size_t char_len(const char *p, size_t len)
{
	size_t n = utf8_len(p, len);

	return n ? n : 1;
}

/* Bytes that the first max characters take. */
static size_t first_chars(struct slice text, size_t max)
{
	size_t at = 0;

	for (size_t n = 0; n < max && at < text.len; n++)
		at += char_len(text.p + at, text.len - at);
	return at;
}

/* Where the last max characters begin. */
static size_t last_chars(struct slice text, size_t max)
{
	size_t n = 0, at = utf8_next_start(text.p, text.len, 0), skip;

	for (size_t i = at; i < text.len; n++)
		i += char_len(text.p + i, text.len - i);
	skip = n > max ? n - max : 0;
	for (; skip > 0; skip--)
		at += char_len(text.p + at, text.len - at);
	return at;
}

bool clip_text(const struct clip *clip, struct str *out)
{
	scoped_str struct str ends = {0};
	struct slice head = str_slice(&clip->head);
	size_t first;

	if (clip->bytes <= clip->head.len && first_chars(head, CHARS_WHOLE) == head.len) {
		str_add(out, head.p, head.len);
		return false;
	}
	/* What was not kept between head and tail is more than the tail needs. */
	str_add(&ends, clip->head.p, clip->head.len);
	str_add(&ends, clip->tail.p, clip->tail.len);
	first = first_chars(head, CHARS_SIDE);
	str_add(out, head.p, first);
	str_puts(out, "\n[...]\n");
	if (ends.len > TAIL_BYTES) {
		memmove(ends.p, ends.p + ends.len - TAIL_BYTES, TAIL_BYTES);
		ends.len = TAIL_BYTES;
	}
	first = last_chars(str_slice(&ends), CHARS_SIDE);
	str_add(out, ends.p + first, ends.len - first);
	return true;
}
