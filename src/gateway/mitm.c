/* SPDX-License-Identifier: Apache-2.0 */
/* States: SERVER_HELLO (upstream's handshake; the program's side takes nothing), CLIENT_HELLO (ours towards the
 * program), OPEN (plain bytes go through the machine), OVER (nothing but what is to be sent yet). */
#include "gateway/mitm.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

#define ERROR_MAX 400
#define WHY_MAX   320 /* of it: what follows the first words */
#define ALERT_LEN 7
#define ALPN_MAX  64 /* "h2" "http/1.1" and few more */

enum mitm_state {
	SERVER_HELLO,
	CLIENT_HELLO,
	OPEN,
	OVER,
};

struct mitm {
	struct ca *ca;
	char *host;
	uint8_t address[16];
	bool has_address, asked_for_name, has_upstream;
	struct str alpn; /* the program's offer */
	void (*open)(void *data, const char *alpn, struct machine *ret);
	void *data;

	enum mitm_state state;
	struct tls_end *end
		[MACHINE_SIDES]; /* client: NULL before its turn; server: NULL without upstream */
	struct machine inner;
	bool was_ended[MACHINE_SIDES]; /* the machine was told of that side's end */
	bool is_cut_off;         /* upstream's end was none in good order: ours is none either */
	bool has_said;           /* the program sent something */
	bool is_offered, is_met; /* our certificate went to the program, which took it */
	char alert[ALERT_LEN];   /* for a program that gets no handshake */
	size_t alert_left;
	bool has_failed;
	char error[ERROR_MAX];
};

static void note(struct mitm *m, bool has_failed, const char *what, const char *why)
{
	if (m->error[0])
		return;
	m->has_failed = has_failed;
	(void)snprintf(m->error, sizeof(m->error), "%s%s", what, why);
}

/* What upstream is offered: what we can read, if the program speaks any of it; else all as it is, since what is
 * behind it is passed on as it is. */
static void add_offer(struct slice alpn, struct str *out)
{
	for (size_t at = 0; at < alpn.len; at += 1 + (unsigned char)alpn.p[at]) {
		struct slice one = {.p = alpn.p + at + 1, .len = (unsigned char)alpn.p[at]};

		if (one.len < alpn.len - at && out->len < ALPN_MAX &&
			(slice_is(one, "h2") || slice_is(one, "http/1.1")))
			str_add(out, one.p - 1, one.len + 1);
	}
	if (out->len == 0)
		str_add(out, alpn.p, alpn.len);
}

static void refuse_program(struct mitm *m, unsigned char description)
{
	const char alert[ALERT_LEN] = {SSL3_RT_ALERT, 3, 3, 0, 2, SSL3_AL_FATAL, (char)description};

	memcpy(m->alert, alert, sizeof(alert));
	m->alert_left = sizeof(alert);
	m->state = OVER;
}

static void greet_program(struct mitm *m, const char *alpn)
{
	const struct ca_name name = {.host = m->host,
		.address = m->asked_for_name || !m->has_address ? NULL : m->address};

	m->end[MACHINE_CLIENT] = ca_accept(m->ca, &name, alpn);
	m->state = CLIENT_HELLO;
	m->is_offered = true;
	if (m->end[MACHINE_CLIENT])
		return;
	note(m, true, "no certificate could be made for the name", "");
	refuse_program(m, SSL_AD_INTERNAL_ERROR);
}

/* What to speak with a program that is answered by us alone. */
static const char *choose_alone(const struct mitm *m)
{
	const struct tls_hello hello = {.alpn = str_slice(&m->alpn)};

	if (tls_hello_offers(&hello, "http/1.1"))
		return "http/1.1";
	return tls_hello_offers(&hello, "h2") ? "h2" : "";
}

static void explain_upstream(struct mitm *m, const struct tls_end *up)
{
	char why[WHY_MAX];

	(void)snprintf(why, sizeof(why), "%s%s", tls_end_reason(up),
		tls_end_was_asked(up)
			? ": it asks for a certificate, which only the program itself "
			  "could show (--tls NAME=passthrough)"
			: "");
	note(m, true,
		tls_end_failure(up) == TLS_END_BAD_CERTIFICATE
			? "upstream's certificate is not valid: "
			: "TLS with upstream failed: ",
		why);
}

/* What a server with that certificate would have looked like to the program itself: TLS fails, with a word why. */
static void lose_upstream(struct mitm *m)
{
	const struct tls_end *up = m->end[MACHINE_SERVER];

	explain_upstream(m, up);
	refuse_program(m, tls_end_fitting_alert(up));
}

static bool is_about_trust(const char *reason)
{
	return strstr(reason, "CA") || strstr(reason, "certificate");
}

static void lose_program(struct mitm *m)
{
	const struct tls_end *in = m->end[MACHINE_CLIENT];
	const char *reason = tls_end_reason(in);

	m->state = OVER;
	if (tls_end_failure(in) == TLS_END_CUT_OFF)
		note(m, true, "the program closed during the handshake",
			": it may not trust this sandbox's CA");
	else if (tls_end_failure(in) == TLS_END_ALERT && is_about_trust(reason))
		note(m, true, "the program does not accept this sandbox's CA: ", reason);
	else
		note(m, true, "TLS with the program failed: ", reason);
}

static void meet_program(struct mitm *m)
{
	struct tls_end *in = m->end[MACHINE_CLIENT];

	if (tls_end_state(in) == TLS_END_FAILED) {
		lose_program(m);
	} else if (tls_end_state(in) == TLS_END_OPEN) {
		m->state = OPEN;
		m->is_met = true;
		m->open(m->data, tls_end_alpn(in), &m->inner);
	}
}

/* Plain bytes. */

static bool has_side(const struct mitm *m, enum machine_side side)
{
	return side == MACHINE_CLIENT || m->has_upstream;
}

static bool is_dead(const struct tls_end *end)
{
	return tls_end_state(end) == TLS_END_FAILED;
}

/* One side's words to the machine. */
static bool hear(struct mitm *m, enum machine_side side)
{
	struct tls_end *end = m->end[side];
	struct slice plain = tls_end_plain(end);
	size_t n = 0;

	if (plain.len > 0) {
		m->has_said = m->has_said || side == MACHINE_CLIENT;
		n = (m->inner.ops->take)(m->inner.self, side, plain.p, plain.len);
		tls_end_took(end, n);
	}
	if (!m->was_ended[side] && tls_end_is_at_end(end)) {
		m->was_ended[side] = true;
		if (side == MACHINE_SERVER)
			m->is_cut_off = tls_end_is_cut_off(end);
		m->inner.ops->end(m->inner.self, side);
		return true;
	}
	return n > 0;
}

/* The machine's words to one side; to nobody where that side is gone. */
static bool tell(struct mitm *m, enum machine_side side)
{
	struct slice plain = m->inner.ops->peek(m->inner.self, side);
	struct tls_end *end = m->end[side];
	size_t n = plain.len;

	if (n > 0 && !is_dead(end))
		n = tls_end_write(end, plain.p, plain.len);
	if (n > 0)
		m->inner.ops->sent(m->inner.self, side, n);
	return n > 0;
}

static bool is_told_all(const struct mitm *m, enum machine_side side)
{
	return m->inner.ops->wants_end(m->inner.self, side) &&
	       m->inner.ops->peek(m->inner.self, side).len == 0;
}

static void explain_end(struct mitm *m)
{
	const struct tls_end *in = m->end[MACHINE_CLIENT], *up = m->end[MACHINE_SERVER];

	if (is_dead(in) && !m->has_said && is_about_trust(tls_end_reason(in)))
		note(m, true,
			"the program does not accept this sandbox's CA: ", tls_end_reason(in));
	else if (is_dead(in))
		note(m, true, "TLS with the program failed: ", tls_end_reason(in));
	else if (!m->has_said && m->was_ended[MACHINE_CLIENT])
		note(m, false, "the program closed right after the handshake",
			": it may not trust this sandbox's CA");
	if (m->has_upstream && is_dead(up))
		explain_upstream(m, up);
}

static void pump(struct mitm *m)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (enum machine_side side = MACHINE_CLIENT; side <= MACHINE_SERVER; side++) {
			if (!has_side(m, side))
				continue;
			moved |= hear(m, side);
			moved |= tell(m, side);
			if (is_told_all(m, side) && !(side == MACHINE_CLIENT && m->is_cut_off))
				tls_end_close(m->end[side]);
		}
	}
	explain_end(m);
}

static void advance(struct mitm *m)
{
	struct tls_end *up = m->end[MACHINE_SERVER];

	if (m->state == SERVER_HELLO && tls_end_state(up) == TLS_END_OPEN)
		greet_program(m, tls_end_alpn(up));
	else if (m->state == SERVER_HELLO && tls_end_state(up) == TLS_END_FAILED)
		lose_upstream(m);
	if (m->state == CLIENT_HELLO)
		meet_program(m);
	if (m->state == OPEN)
		pump(m);
}

/* The machine that the bridge sees. */

static size_t mitm_take(void *self, enum machine_side from, const void *p, size_t len)
{
	struct mitm *m = self;
	size_t done = 0, n;

	if (m->state == OVER || !has_side(m, from))
		return len;
	if (!m->end[from])
		return 0;
	do {
		n = tls_end_put(m->end[from], (const char *)p + done, len - done);
		done += n;
		advance(m);
	} while (n > 0 && done < len);
	return done;
}

static void mitm_end(void *self, enum machine_side from)
{
	struct mitm *m = self;

	if (m->end[from]) {
		tls_end_put_end(m->end[from]);
		advance(m);
	} else if (from == MACHINE_CLIENT && m->state == SERVER_HELLO) {
		note(m, true, "the program closed before the handshake", "");
		m->state = OVER;
	}
}

static struct slice mitm_peek(void *self, enum machine_side to)
{
	struct mitm *m = self;

	if (to == MACHINE_CLIENT && m->alert_left > 0)
		return (struct slice){
			.p = m->alert + ALERT_LEN - m->alert_left, .len = m->alert_left};
	return m->end[to] ? tls_end_cipher(m->end[to]) : (struct slice){0};
}

static void mitm_sent(void *self, enum machine_side to, size_t n)
{
	struct mitm *m = self;

	if (to == MACHINE_CLIENT && m->alert_left > 0) {
		m->alert_left -= n;
		return;
	}
	tls_end_sent(m->end[to], n);
	advance(m);
}

static bool mitm_wants_end(void *self, enum machine_side to)
{
	struct mitm *m = self;

	if (m->state == OVER || !has_side(m, to))
		return true;
	return m->state == OPEN && (is_dead(m->end[to]) || is_told_all(m, to));
}

static size_t mitm_holds(const void *self)
{
	const struct mitm *m = self;
	size_t n = sizeof(*m) + m->alpn.cap;

	for (int i = 0; i < MACHINE_SIDES; i++)
		if (m->end[i])
			n += tls_end_holds(m->end[i]);
	return n + (m->inner.ops ? m->inner.ops->holds(m->inner.self) : 0);
}

static int mitm_broken(void *self)
{
	struct mitm *m = self;

	return m->inner.ops ? m->inner.ops->error(m->inner.self) : 0;
}

static int mitm_check(void *self, bool must_read)
{
	struct mitm *m = self;

	return m->inner.ops ? m->inner.ops->check(m->inner.self, must_read) : 0;
}

static void mitm_free(void *self)
{
	struct mitm *m = self;

	if (!m)
		return;
	if (m->inner.ops)
		m->inner.ops->free(m->inner.self);
	tls_end_free(m->end[MACHINE_CLIENT]);
	tls_end_free(m->end[MACHINE_SERVER]);
	str_done(&m->alpn);
	free(m->host);
	free(m);
}

const struct machine_ops mitm_machine = {.take = mitm_take,
	.end = mitm_end,
	.peek = mitm_peek,
	.sent = mitm_sent,
	.wants_end = mitm_wants_end,
	.holds = mitm_holds,
	.error = mitm_broken,
	.check = mitm_check,
	.free = mitm_free};

bool mitm_is_opening(const struct mitm *m)
{
	return m->state == SERVER_HELLO || m->state == CLIENT_HELLO;
}

bool mitm_waits_for_upstream(const struct mitm *m)
{
	return m->state == SERVER_HELLO;
}

const char *mitm_error(const struct mitm *m)
{
	return m->error;
}

bool mitm_is_unread(const struct mitm *m)
{
	return m->is_offered && !m->is_met;
}

bool mitm_has_failed(const struct mitm *m)
{
	return m->has_failed;
}

static void copy(struct mitm *m, const struct mitm_config *config)
{
	m->ca = config->ca;
	m->host = mem_dup(config->host);
	m->has_address = config->address != NULL;
	if (config->address)
		memcpy(m->address, config->address, sizeof(m->address));
	m->asked_for_name = config->asked_for_name;
	m->has_upstream = config->has_upstream;
	str_add(&m->alpn, config->alpn.p, config->alpn.len);
	m->open = config->open;
	m->data = config->data;
}

struct mitm *mitm_new(const struct mitm_config *config)
{
	struct mitm *m = new0(struct mitm);
	scoped_str struct str offer = {0};
	struct tls_target target = {
		.host = config->host, .address = config->address, .port = config->port};

	copy(m, config);
	if (!m->has_upstream) {
		greet_program(m, choose_alone(m));
		return m;
	}
	add_offer(config->alpn, &offer);
	target.alpn = str_slice(&offer);
	m->end[MACHINE_SERVER] = tls_client_connect(config->client, &target);
	if (m->end[MACHINE_SERVER])
		return m;
	mitm_free(m);
	return NULL;
}
