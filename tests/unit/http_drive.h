/* SPDX-License-Identifier: Apache-2.0 */
/* Drives an HTTP machine as conn does, from a script of what each side sends, in pieces of a given size, and
 * writes down what each side gets and what the machine tells. Order and content must not depend on the pieces. */
#ifndef TESTS_HTTP_DRIVE_H
#define TESTS_HTTP_DRIVE_H

#include <stdio.h>
#include <string.h>

#include "gateway/http_machine.h"
#include "util/str.h"

struct http_drive {
	struct machine machine;
	struct str pending[MACHINE_SIDES]; /* sent by a side, not taken yet */
	struct str got[MACHINE_SIDES];     /* what arrived at a side */
	bool eof[MACHINE_SIDES], eof_told[MACHINE_SIDES];
	size_t step; /* bytes offered at once */
	size_t most; /* the most that ever waited for a side */
	struct str log;
	const char *refuse_host; /* judge says no to it */
	int64_t now;
};

static inline int64_t http_drive_now(void *arg)
{
	return ((struct http_drive *)arg)->now += 10;
}

static inline void http_drive_judge(
	void *arg, const struct http_request *r, struct http_answer *ret)
{
	struct http_drive *d = arg;

	str_printf(&d->log, "judge %.*s %s host=%s port=%u path=%s%s\n", (int)r->method.len,
		r->method.p, r->url, r->host ? r->host : "-", r->port, r->path,
		r->is_connect ? " connect" : "");
	if (!d->refuse_host || !r->host || strcmp(r->host, d->refuse_host) != 0)
		return;
	ret->refuse = true;
	(void)snprintf(ret->rule, sizeof(ret->rule), "deny %s", r->host);
	(void)snprintf(ret->reason, sizeof(ret->reason), "No rule allows %s", r->host);
}

static inline void http_drive_on_refused(void *arg, const struct http_refusal *r)
{
	struct http_drive *d = arg;

	str_printf(&d->log, "refused %u %.*s %s host=%s [%s] %s\n", r->status, (int)r->method.len,
		r->method.p ? r->method.p : "", r->url ? r->url : "-", r->host ? r->host : "-",
		r->rule, r->reason);
}

static inline void http_drive_copy(
	struct str *log, const char *name, const struct http_copy_view *v)
{
	if (v->seen || v->kept)
		str_printf(log, " %s=%llu%s%s", name, (unsigned long long)v->seen,
			v->whole ? "" : "?", v->truncated ? "~" : "");
	if (v->kept)
		str_printf(log, ":%.*s", v->bytes.len < 100 ? (int)v->bytes.len : 100,
			v->bytes.p ? v->bytes.p : "");
}

static inline void http_drive_on_exchange(void *arg, const struct http_exchange *x)
{
	struct http_drive *d = arg;

	str_printf(&d->log, "%s %.*s %s", x->protocol, (int)x->method.len, x->method.p, x->url);
	if (x->has_length)
		str_printf(&d->log, " len=%llu", (unsigned long long)x->length);
	http_drive_copy(&d->log, "body", &x->body);
	str_printf(&d->log, " -> %u", x->status);
	if (x->response_has_length)
		str_printf(&d->log, " len=%llu", (unsigned long long)x->response_length);
	http_drive_copy(&d->log, "body", &x->response_body);
	for (size_t i = 0; i < x->n_secrets; i++)
		str_printf(&d->log, " secret=%s", x->secrets[i]);
	for (size_t i = 0; i < x->n_stand_ins; i++)
		str_printf(&d->log, " stand_in=%s", x->stand_ins[i]);
	if (x->upgrade)
		str_printf(&d->log, " upgrade=%s", x->upgrade);
	if (x->error)
		str_printf(&d->log, " error=%s", x->error);
	str_putc(&d->log, '\n');
}

static inline void http_drive_on_message(void *arg, const struct http_message *m)
{
	struct http_drive *d = arg;

	str_printf(&d->log, "message %s %s %d%s", m->url, m->from == MACHINE_CLIENT ? "out" : "in",
		m->opcode, m->compressed ? "z" : "");
	http_drive_copy(&d->log, "body", &m->body);
	if (m->error)
		str_printf(&d->log, " error=%s", m->error);
	str_putc(&d->log, '\n');
}

static inline void http_drive_on_misuse(void *arg, const struct http_misuse *m)
{
	str_printf(&((struct http_drive *)arg)->log, "misuse %s %s %s\n", m->name,
		m->host ? m->host : "-", m->where);
}

static const struct http_hooks http_drive_hooks = {http_drive_now, http_drive_judge,
	http_drive_on_refused, http_drive_on_exchange, http_drive_on_message, http_drive_on_misuse};

/* What the machine made for a side arrives there, `step` bytes at once. */
static inline bool http_drive_deliver(struct http_drive *d, enum machine_side to)
{
	const struct machine_ops *ops = d->machine.ops;
	struct slice out = ops->peek(d->machine.self, to);
	size_t n = out.len < d->step ? out.len : d->step;

	if (out.len > d->most)
		d->most = out.len;
	if (!n)
		return false;
	str_add(&d->got[to], out.p, n);
	ops->sent(d->machine.self, to, n);
	return true;
}

static inline bool http_drive_offer(struct http_drive *d, enum machine_side from)
{
	const struct machine_ops *ops = d->machine.ops;
	struct str *pending = &d->pending[from];
	size_t n = pending->len < d->step ? pending->len : d->step;

	if (n && !ops->error(d->machine.self)) {
		n = (ops->take)(d->machine.self, from, pending->p, n);
		memmove(pending->p, pending->p + n, pending->len - n);
		pending->len -= n;
		return n > 0;
	}
	if (!n && d->eof[from] && !d->eof_told[from]) {
		d->eof_told[from] = true;
		ops->end(d->machine.self, from);
		return true;
	}
	return false;
}

/* Until nothing moves. */
static inline void http_drive_run(struct http_drive *d)
{
	bool moved;

	do {
		moved = http_drive_offer(d, MACHINE_CLIENT);
		moved |= http_drive_deliver(d, MACHINE_SERVER);
		moved |= http_drive_offer(d, MACHINE_SERVER);
		moved |= http_drive_deliver(d, MACHINE_CLIENT);
	} while (moved);
}

static inline void http_drive_send(struct http_drive *d, enum machine_side from, struct slice bytes)
{
	str_add(&d->pending[from], bytes.p, bytes.len);
	http_drive_run(d);
}

static inline void http_drive_eof(struct http_drive *d, enum machine_side from)
{
	d->eof[from] = true;
	http_drive_run(d);
}

static inline void http_drive_done(struct http_drive *d)
{
	d->machine.ops->free(d->machine.self);
	for (int i = 0; i < MACHINE_SIDES; i++) {
		str_done(&d->pending[i]);
		str_done(&d->got[i]);
	}
	str_done(&d->log);
}

#endif
