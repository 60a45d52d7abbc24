/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/plain_machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/h2_machine.h"
#include "util/mem.h"
#include "util/str.h"

#define LOOK_MAX   4096
#define BUFFER_MAX (32u << 10) /* towards a side */

struct plain_machine {
	struct http_setup setup;
	bool may_pass, is_decided;
	struct machine inner; /* ops NULL: bytes are passed on */
	struct str first;     /* of the program, while it is looked at */
	struct str to[MACHINE_SIDES];
	size_t at[MACHINE_SIDES];
	bool ended[MACHINE_SIDES]; /* that side's end has come */
	int error;
};

/* Bytes that were looked at go first. */
static size_t give_first(struct plain_machine *m)
{
	size_t n = 0;

	if (m->inner.ops && m->first.len > 0)
		n = (m->inner.ops->take)(m->inner.self, MACHINE_CLIENT, m->first.p, m->first.len);
	if (n > 0) {
		m->first.len -= n;
		memmove(m->first.p, m->first.p + n, m->first.len);
	}
	return n;
}

static void pass_on(struct plain_machine *m)
{
	m->is_decided = true;
	if (!m->may_pass)
		m->error = -EACCES;
	str_add(&m->to[MACHINE_SERVER], m->first.p, m->first.len);
	str_reset(&m->first);
}

static void speak_http(struct plain_machine *m)
{
	m->is_decided = true;
	http_machine_new(&m->setup, &m->inner);
}

static void look(struct plain_machine *m)
{
	switch (http_sniff(str_slice(&m->first))) {
	case HTTP_KIND_MORE:
		/* So much that could still become a request, and by then nobody would read it. */
		if (m->first.len >= LOOK_MAX)
			speak_http(m);
		break;
	case HTTP_KIND_HTTP1:
		speak_http(m);
		break;
	case HTTP_KIND_HTTP2:
		m->is_decided = true;
		h2_machine_new(&m->setup, &m->inner);
		break;
	case HTTP_KIND_OTHER:
		pass_on(m);
		break;
	}
}

static size_t take(void *self, enum machine_side from, const void *p, size_t len)
{
	struct plain_machine *m = self;
	struct str *out = &m->to[machine_other(from)];
	size_t room;

	/* A server of HTTP/2 may greet before its client does; who else speaks first speaks no HTTP. */
	if (!m->is_decided && from == MACHINE_SERVER) {
		if (http_is_greeting((struct slice){.p = p, .len = len}))
			return 0;
		pass_on(m);
	}
	if (!m->is_decided) {
		room = LOOK_MAX - m->first.len;
		len = len < room ? len : room;
		str_add(&m->first, p, len);
		look(m);
		return len;
	}
	if (m->inner.ops) {
		give_first(m);
		return from == MACHINE_CLIENT && m->first.len > 0
		               ? 0
		               : (m->inner.ops->take)(m->inner.self, from, p, len);
	}
	room = out->len - m->at[machine_other(from)] < BUFFER_MAX
	               ? BUFFER_MAX - (out->len - m->at[machine_other(from)])
	               : 0;
	len = len < room ? len : room;
	str_add(out, p, len);
	return len;
}

static size_t holds(const void *self)
{
	const struct plain_machine *m = self;

	return sizeof(*m) + m->first.cap + m->to[MACHINE_CLIENT].cap + m->to[MACHINE_SERVER].cap +
	       (m->inner.ops ? m->inner.ops->holds(m->inner.self) : 0);
}

static void end(void *self, enum machine_side from)
{
	struct plain_machine *m = self;

	if (!m->is_decided)
		pass_on(m);
	m->ended[from] = true;
	if (m->inner.ops && !(from == MACHINE_CLIENT && m->first.len > 0))
		m->inner.ops->end(m->inner.self, from);
}

/* What was looked at may have had to wait for room; the end of the program's side with it. */
static void catch_up(struct plain_machine *m)
{
	if (!m->inner.ops || m->first.len == 0)
		return;
	while (give_first(m) > 0)
		;
	if (m->first.len == 0 && m->ended[MACHINE_CLIENT])
		m->inner.ops->end(m->inner.self, MACHINE_CLIENT);
}

static struct slice peek(void *self, enum machine_side to)
{
	struct plain_machine *m = self;

	catch_up(m);
	if (m->inner.ops)
		return m->inner.ops->peek(m->inner.self, to);
	return (struct slice){.p = m->to[to].p + m->at[to], .len = m->to[to].len - m->at[to]};
}

static void sent(void *self, enum machine_side to, size_t n)
{
	struct plain_machine *m = self;

	if (m->inner.ops) {
		m->inner.ops->sent(m->inner.self, to, n);
		return;
	}
	m->at[to] += n;
	if (m->at[to] == m->to[to].len) {
		str_done(&m->to[to]);
		m->at[to] = 0;
	} else if (m->at[to] > BUFFER_MAX) {
		m->to[to].len -= m->at[to];
		memmove(m->to[to].p, m->to[to].p + m->at[to], m->to[to].len);
		m->at[to] = 0;
	}
}

static bool wants_end(void *self, enum machine_side to)
{
	struct plain_machine *m = self;

	if (m->inner.ops)
		return m->inner.ops->wants_end(m->inner.self, to);
	return m->ended[machine_other(to)];
}

static int error(void *self)
{
	struct plain_machine *m = self;

	return m->error || !m->inner.ops ? m->error : m->inner.ops->error(m->inner.self);
}

static int check(void *self, bool must_read)
{
	struct plain_machine *m = self;

	m->may_pass = !must_read;
	if (m->inner.ops)
		return m->inner.ops->check(m->inner.self, must_read);
	return m->is_decided && must_read ? -EACCES : 0;
}

static void free_machine(void *self)
{
	struct plain_machine *m = self;

	if (!m)
		return;
	if (m->inner.ops)
		m->inner.ops->free(m->inner.self);
	str_done(&m->first);
	for (int i = 0; i < MACHINE_SIDES; i++)
		str_done(&m->to[i]);
	free(m);
}

void plain_machine_new(const struct http_setup *setup, bool may_pass, struct machine *ret_machine)
{
	static const struct machine_ops ops = {.take = take,
		.end = end,
		.peek = peek,
		.sent = sent,
		.wants_end = wants_end,
		.holds = holds,
		.error = error,
		.check = check,
		.free = free_machine};
	struct plain_machine *m = new0(struct plain_machine);

	m->setup = *setup;
	m->may_pass = may_pass;
	*ret_machine = (struct machine){.ops = &ops, .self = m};
}
