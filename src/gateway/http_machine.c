/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "gateway/http_parts.h"
#include "gateway/http_problem.h"
#include "util/mem.h"
#include "util/scoped.h"

#define SMALL_BUFFER 4096 /* kept while idle */

static size_t waiting(const struct http_machine *m, enum machine_side to)
{
	return m->out[to].bytes.len - m->out[to].at;
}

bool http_machine_is_hop(struct slice name)
{
	static const char *const names[] = {"connection", "keep-alive", "proxy-connection",
		"proxy-authorization", "proxy-authenticate", "upgrade", "te", "http2-settings",
		"content-length", "transfer-encoding", "host"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (http1_is(name, names[i]))
			return true;
	return false;
}

void http_machine_add_connection(struct str *out, unsigned minor, bool keep, const char *more)
{
	const char *word = keep ? minor ? NULL : "keep-alive" : minor ? "close" : NULL;

	if (!word && !more)
		return;
	str_printf(out, "Connection: %s%s%s\r\n", word ? word : "", word && more ? ", " : "",
		more ? more : "");
}

int http_machine_gather(struct http_machine *m, enum machine_side side, struct slice in,
	size_t *ret_used, struct http1_fault *ret_fault)
{
	struct str *head = &m->head[side];
	size_t before = head->len, most = HTTP1_MAX_HEAD + 1 - before;
	long n;

	str_add(head, in.p, in.len < most ? in.len : most);
	*ret_used = head->len - before;
	n = http1_find_end(str_slice(head), &m->scanned[side], ret_fault);
	if (n < 0)
		return -EBADMSG;
	if (n == 0)
		return 0;
	*ret_used = (size_t)n - before;
	head->len = (size_t)n;
	m->scanned[side] = 0;
	return 1;
}

void http_machine_drop_pair(struct http_machine *m)
{
	struct http_pair *pair = take(&m->pair);

	if (!pair)
		return;
	http_turn_done(&pair->turn);
	http1_head_done(&pair->request);
	http1_head_done(&pair->response);
	http1_body_done(&pair->request_body);
	http1_body_done(&pair->response_body);
	str_done(&pair->request_text);
	str_done(&pair->response_text);
	free(pair);
}

void http_machine_close(struct http_machine *m)
{
	m->closing[MACHINE_CLIENT] = m->closing[MACHINE_SERVER] = true;
	m->discard = true;
	str_done(&m->head[MACHINE_CLIENT]);
	str_done(&m->head[MACHINE_SERVER]);
	if (m->pair) {
		http_turn_report(&m->pair->turn);
		http_machine_drop_pair(m);
	}
}

void http_machine_settle(struct http_machine *m)
{
	struct http_pair *pair = m->pair;
	bool keep = pair->keep && !m->ended[MACHINE_CLIENT] && !m->ended[MACHINE_SERVER];

	if (!pair->response_ended || (!pair->request_body.ended && keep))
		return;
	http_turn_report(&pair->turn);
	if (!keep)
		http_machine_close(m);
	else
		http_machine_drop_pair(m);
}

void http_machine_answer_refusal(struct http_machine *m, bool keep)
{
	scoped_str struct str document = {0};
	struct http_pair *pair = m->pair;
	struct str *out = &m->out[MACHINE_CLIENT].bytes;
	unsigned minor = pair->request.method.len ? pair->request.minor : 1;

	http_turn_problem(&pair->turn, &document);
	http1_add_status(out, pair->turn.answer.status,
		slice_of(http_problem_title(pair->turn.answer.status)), minor);
	str_puts(out, "Content-Type: " HTTP_PROBLEM_TYPE "\r\nCache-Control: no-store\r\n");
	str_printf(out, "Content-Length: %zu\r\n", document.len);
	http_machine_add_connection(out, minor, keep, NULL);
	http1_add_end(out);
	if (!slice_is(pair->request.method, "HEAD"))
		str_add(out, document.p, document.len);
	pair->response_ended = true;
	pair->keep = keep;
	http_machine_settle(m);
}

void http_machine_break_off(struct http_machine *m)
{
	struct http_out *out = &m->out[MACHINE_SERVER];

	str_done(&out->bytes);
	out->at = 0;
	if (m->pair->has_response)
		http_machine_close(m);
	else
		http_machine_answer_refusal(m, false);
}

static bool has_room(const struct http_machine *m, enum machine_side from)
{
	/* Each request may be answered here: none is begun while the client does not take what it gets. */
	return waiting(m, machine_other(from)) < HTTP_HIGH_WATER &&
	       (from == MACHINE_SERVER || m->pair || waiting(m, MACHINE_CLIENT) < HTTP_HIGH_WATER);
}

static size_t step(struct http_machine *m, enum machine_side from, struct slice in)
{
	if (m->discard)
		return in.len;
	if (!has_room(m, from))
		return 0;
	if (in.len > HTTP_PIECE)
		in.len = HTTP_PIECE;
	if (m->ws)
		return http_upgrade_take(m, from, in);
	return from == MACHINE_CLIENT ? http_request_take(m, in) : http_response_take(m, in);
}

static size_t machine_take(void *self, enum machine_side from, const void *p, size_t len)
{
	struct http_machine *m = self;
	size_t used = 0;

	while (used < len && !m->error) {
		size_t n = step(
			m, from, (struct slice){.p = (const char *)p + used, .len = len - used});

		if (!n)
			break;
		used += n;
	}
	if (m->plain.cap > SMALL_BUFFER)
		str_done(&m->plain);
	return used;
}

static void machine_end(void *self, enum machine_side from)
{
	struct http_machine *m = self;

	m->ended[from] = true;
	if (m->discard)
		return;
	if (m->ws)
		m->closing[machine_other(from)] = true;
	else if (from == MACHINE_CLIENT)
		http_request_cut(m);
	else
		http_response_cut(m);
}

static struct slice machine_peek(void *self, enum machine_side to)
{
	const struct http_out *out = &((struct http_machine *)self)->out[to];

	return (struct slice){
		.p = out->bytes.p ? out->bytes.p + out->at : NULL, .len = out->bytes.len - out->at};
}

static void machine_sent(void *self, enum machine_side to, size_t n)
{
	struct http_out *out = &((struct http_machine *)self)->out[to];

	out->at += n;
	if (out->at < out->bytes.len)
		return;
	out->at = 0;
	if (out->bytes.cap > SMALL_BUFFER)
		str_done(&out->bytes);
	else
		str_reset(&out->bytes);
}

static bool machine_wants_end(void *self, enum machine_side to)
{
	return ((struct http_machine *)self)->closing[to];
}

static size_t pair_holds(const struct http_pair *pair)
{
	return pair ? sizeof(*pair) + http_turn_holds(&pair->turn) + pair->request_text.cap +
	                       pair->response_text.cap
	            : 0;
}

static size_t machine_holds(const void *self)
{
	const struct http_machine *m = self;
	size_t n = sizeof(*m) + pair_holds(m->pair) + m->plain.cap;

	for (int i = 0; i < MACHINE_SIDES; i++) {
		n += m->out[i].bytes.cap + m->head[i].cap;
		if (m->ws)
			n += m->ws[i].message.bytes.cap + m->ws[i].control.bytes.cap;
	}
	return n;
}

static int machine_error(void *self)
{
	return ((struct http_machine *)self)->error;
}

static int machine_check(void *self, bool must_read)
{
	struct http_machine *m = self;

	return m->pair && !http_turn_judge_again(&m->pair->turn) ? -EACCES : 0;
}

static void machine_free(void *self)
{
	struct http_machine *m = self;

	if (!m)
		return;
	http_upgrade_done(m);
	if (m->pair) {
		if (!m->pair->turn.error)
			m->pair->turn.error = "the connection was broken off";
		http_turn_report(&m->pair->turn);
		http_machine_drop_pair(m);
	}
	for (int i = 0; i < MACHINE_SIDES; i++) {
		str_done(&m->out[i].bytes);
		str_done(&m->head[i]);
	}
	str_done(&m->plain);
	free(m);
}

void http_machine_new(const struct http_setup *setup, struct machine *ret_machine)
{
	static const struct machine_ops ops = {
		.take = machine_take,
		.end = machine_end,
		.peek = machine_peek,
		.sent = machine_sent,
		.wants_end = machine_wants_end,
		.holds = machine_holds,
		.error = machine_error,
		.check = machine_check,
		.free = machine_free,
	};
	struct http_machine *m = new0(struct http_machine);

	m->setup = *setup;
	*ret_machine = (struct machine){.ops = &ops, .self = m};
}
