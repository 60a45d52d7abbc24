/* SPDX-License-Identifier: Apache-2.0 */
/* A program, the interception, an upstream: all in one process, bytes carried by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "authority.h"
#include "gateway/mitm.h"
#include "gateway/tls_end_internal.h"
#include "util/mem.h"

#define NO_ROOTS "/nonexistent"
#define HELD_MAX 5000
#define MUCH     300000

static struct authority sandbox_authority, world, nobody;
static struct ca *sandbox_ca, *world_ca, *nobody_ca;
static struct tls_client *program, *stranger, *gateway;

static void make(struct authority *a, const char *name, struct ca **ret)
{
	authority_make(a, name);
	assert_int_equal(ca_new(slice_of(a->key_hex), str_slice(&a->base64), ret, NULL), 0);
}

static int setup(void **state)
{
	make(&sandbox_authority, "sandbox", &sandbox_ca);
	make(&world, "world", &world_ca);
	make(&nobody, "nobody", &nobody_ca);
	assert_int_equal(tls_client_new(NO_ROOTS, sandbox_authority.pem.p, &program, NULL), 0);
	assert_int_equal(tls_client_new(NO_ROOTS, world.pem.p, &stranger, NULL), 0);
	assert_int_equal(tls_client_new(NO_ROOTS, world.pem.p, &gateway, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	ca_free(sandbox_ca);
	ca_free(world_ca);
	ca_free(nobody_ca);
	tls_client_free(program);
	tls_client_free(stranger);
	tls_client_free(gateway);
	authority_done(&sandbox_authority);
	authority_done(&world);
	authority_done(&nobody);
	return 0;
}

/* The machine inside: passes on what it gets, and holds little. */
struct inner {
	char alpn[16];
	bool is_freed;
	int n_opened;
	struct str held[MACHINE_SIDES]; /* for that side */
	bool ended[MACHINE_SIDES];      /* that side said its last */
};

static size_t inner_take(void *self, enum machine_side from, const void *p, size_t len)
{
	struct inner *m = self;
	struct str *to = &m->held[machine_other(from)];
	size_t n = len < HELD_MAX - to->len ? len : HELD_MAX - to->len;

	str_add(to, p, n);
	return n;
}

static void inner_end(void *self, enum machine_side from)
{
	((struct inner *)self)->ended[from] = true;
}

static struct slice inner_peek(void *self, enum machine_side to)
{
	return str_slice(&((struct inner *)self)->held[to]);
}

static void inner_sent(void *self, enum machine_side to, size_t n)
{
	struct str *held = &((struct inner *)self)->held[to];

	memmove(held->p, held->p + n, held->len - n);
	held->len -= n;
}

static bool inner_wants_end(void *self, enum machine_side to)
{
	struct inner *m = self;

	return m->ended[machine_other(to)];
}

static int inner_error(void *self)
{
	return 0;
}

static void inner_free(void *self)
{
	struct inner *m = self;

	m->is_freed = true;
	str_done(&m->held[0]);
	str_done(&m->held[1]);
}

static const struct machine_ops inner_ops = {.take = inner_take,
	.end = inner_end,
	.peek = inner_peek,
	.sent = inner_sent,
	.wants_end = inner_wants_end,
	.error = inner_error,
	.free = inner_free};

static void open_inner(void *data, const char *alpn, struct machine *ret)
{
	struct inner *m = data;

	m->n_opened++;
	(void)snprintf(m->alpn, sizeof(m->alpn), "%s", alpn);
	*ret = (struct machine){.ops = &inner_ops, .self = m};
}

struct world {
	struct tls_end *program, *upstream;
	struct mitm *mitm;
	struct inner inner;
	struct str raw; /* what the program got before any TLS of its own */
};

struct plan {
	struct tls_client *who;
	struct ca *upstream; /* NULL: there is none */
	const char *upstream_name, *offer, *agree;
	bool no_name;
};

static void begin(struct world *w, const struct plan *plan)
{
	static const uint8_t address[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1};
	const char *offer = plan->offer ? plan->offer : "\2h2\10http/1.1";
	const struct tls_target target = {.host = plan->no_name ? NULL : "a.test",
		.address = address,
		.alpn = slice_of(offer)};
	const struct mitm_config config = {.client = gateway,
		.ca = sandbox_ca,
		.host = "a.test",
		.address = address,
		.asked_for_name = !plan->no_name,
		.alpn = slice_of(offer),
		.has_upstream = plan->upstream != NULL,
		.open = open_inner,
		.data = &w->inner};

	*w = (struct world){0};
	w->program = tls_client_connect(plan->who ? plan->who : program, &target);
	if (plan->upstream)
		w->upstream = ca_accept(plan->upstream,
			&(struct ca_name){
				.host = plan->upstream_name ? plan->upstream_name : "a.test"},
			plan->agree);
	w->mitm = mitm_new(&config);
	assert_non_null(w->mitm);
}

static bool to_mitm(struct world *w, enum machine_side from, struct tls_end *end, size_t piece)
{
	struct slice s = end ? tls_end_cipher(end) : (struct slice){0};
	size_t n = s.len < piece ? s.len : piece;

	n = n ? (mitm_machine.take)(w->mitm, from, s.p, n) : 0;
	if (n)
		tls_end_sent(end, n);
	return n > 0;
}

static bool from_mitm(struct world *w, enum machine_side to, struct tls_end *end, size_t piece)
{
	struct slice s = mitm_machine.peek(w->mitm, to);
	size_t n = s.len < piece ? s.len : piece;

	if (n == 0)
		return false;
	if (to == MACHINE_CLIENT && tls_end_state(end) == TLS_END_HANDSHAKE)
		str_add(&w->raw, s.p, n);
	n = tls_end_put(end, s.p, n);
	if (n)
		mitm_machine.sent(w->mitm, to, n);
	return n > 0;
}

static void settle(struct world *w, size_t piece)
{
	while (to_mitm(w, MACHINE_CLIENT, w->program, piece) |
		to_mitm(w, MACHINE_SERVER, w->upstream, piece) |
		from_mitm(w, MACHINE_CLIENT, w->program, piece) |
		(w->upstream && from_mitm(w, MACHINE_SERVER, w->upstream, piece)))
		;
}

static void end(struct world *w)
{
	bool has_inner = w->inner.n_opened > 0;

	mitm_machine.free(w->mitm);
	assert_int_equal(w->inner.is_freed, has_inner);
	tls_end_free(w->program);
	tls_end_free(w->upstream);
	str_done(&w->raw);
}

static void test_intercepts(void **state)
{
	static const struct {
		const char *offer, *agree, *both;
	} rows[] = {{NULL, "h2", "h2"}, {NULL, "http/1.1", "http/1.1"}, {NULL, "", ""},
		{"", "h2", ""}, {"\10http/1.1", "h2", ""},
		{"\12postgresql", "postgresql", "postgresql"}, {"\2h3\6spdy/1\2h2", "spdy/1", ""},
		{"\2h3\6spdy/1\2h2", "h2", "h2"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t piece = 1; piece < 70000; piece = piece * 40 + 30) {
			struct world w;

			begin(&w, &(struct plan){.upstream = world_ca,
					  .offer = rows[i].offer,
					  .agree = rows[i].agree});
			settle(&w, piece);
			assert_string_equal(mitm_error(w.mitm), "");
			assert_int_equal(tls_end_state(w.program), TLS_END_OPEN);
			assert_int_equal(tls_end_state(w.upstream), TLS_END_OPEN);
			assert_string_equal(w.inner.alpn, rows[i].both);
			assert_string_equal(tls_end_alpn(w.program), rows[i].both);
			assert_int_equal(w.inner.n_opened, 1);
			end(&w);
		}
}

/* Much, one way, the reader slow: nothing is lost, and little is held on the way. */
static void carry_much(struct world *w, struct tls_end *from, struct tls_end *to)
{
	char *text = mem_zero(1, MUCH);
	size_t sent = 0, got = 0;

	for (size_t i = 0; i < MUCH; i++)
		text[i] = (char)(i * 7 + i / 251);
	while (got < MUCH) {
		struct slice s;
		size_t n;

		sent += tls_end_write(from, text + sent, MUCH - sent);
		settle(w, 40000);
		assert_true(sent < got + 400000);
		s = tls_end_plain(to);
		assert_true(s.len > 0);
		n = s.len < 3000 ? s.len : 3000;
		assert_memory_equal(s.p, text + got, n);
		got += n;
		tls_end_took(to, n);
	}
	free(text);
}

static void test_carries_and_ends(void **state)
{
	struct world w;

	begin(&w, &(struct plan){.upstream = world_ca, .agree = "http/1.1"});
	settle(&w, 70000);
	carry_much(&w, w.program, w.upstream);
	carry_much(&w, w.upstream, w.program);
	tls_end_write(w.program, "last", 4);
	tls_end_close(w.program);
	settle(&w, 70000);
	assert_true(slice_is(tls_end_plain(w.upstream), "last"));
	tls_end_took(w.upstream, 4);
	assert_true(tls_end_is_at_end(w.upstream));
	assert_false(tls_end_is_cut_off(w.upstream));
	assert_true(mitm_machine.wants_end(w.mitm, MACHINE_SERVER));
	assert_false(mitm_machine.wants_end(w.mitm, MACHINE_CLIENT));
	/* Half closed, not closed. */
	tls_end_write(w.upstream, "answer", 6);
	tls_end_close(w.upstream);
	settle(&w, 70000);
	assert_true(slice_is(tls_end_plain(w.program), "answer"));
	tls_end_took(w.program, 6);
	assert_true(tls_end_is_at_end(w.program));
	assert_false(tls_end_is_cut_off(w.program));
	assert_true(mitm_machine.wants_end(w.mitm, MACHINE_CLIENT));
	assert_string_equal(mitm_error(w.mitm), "");
	end(&w);
}

/* What upstream did not end in good order the program does not see as whole. */
static void test_passes_on_a_cut(void **state)
{
	struct world w;

	begin(&w, &(struct plan){.upstream = world_ca, .agree = "http/1.1"});
	settle(&w, 70000);
	tls_end_write(w.upstream, "half", 4);
	settle(&w, 70000);
	mitm_machine.end(w.mitm, MACHINE_SERVER);
	settle(&w, 70000);
	assert_true(mitm_machine.wants_end(w.mitm, MACHINE_CLIENT));
	assert_true(slice_is(tls_end_plain(w.program), "half"));
	tls_end_took(w.program, 4);
	tls_end_put_end(w.program);
	assert_true(tls_end_is_cut_off(w.program));
	end(&w);
}

static void test_bad_certificate(void **state)
{
	static const struct {
		struct ca **upstream;
		const char *name, *error;
		unsigned char alert;
	} rows[] = {{&nobody_ca, "a.test",
			    "upstream's certificate is not valid: unable to get local issuer "
			    "certificate",
			    SSL_AD_UNKNOWN_CA},
		{&world_ca, "b.test", "upstream's certificate is not valid: hostname mismatch",
			SSL_AD_BAD_CERTIFICATE}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w;

		begin(&w, &(struct plan){.upstream = *rows[i].upstream,
				  .upstream_name = rows[i].name,
				  .agree = "h2"});
		settle(&w, 70000);
		assert_string_equal(mitm_error(w.mitm), rows[i].error);
		assert_true(mitm_has_failed(w.mitm));
		assert_int_equal(w.inner.n_opened, 0);
		assert_int_equal(w.raw.len, 7);
		assert_int_equal((unsigned char)w.raw.p[6], rows[i].alert);
		assert_int_equal(tls_end_failure(w.program), TLS_END_ALERT);
		assert_true(mitm_machine.wants_end(w.mitm, MACHINE_SERVER));
		assert_true(mitm_machine.wants_end(w.mitm, MACHINE_CLIENT));
		end(&w);
	}
}

/* Upstream wants to see a certificate: the program is told what to do. */
static void test_certificate_asked(void **state)
{
	struct world w;

	begin(&w, &(struct plan){.upstream = world_ca, .agree = "h2"});
	SSL_set_verify(w.upstream->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_set_max_proto_version(w.upstream->ssl, TLS1_2_VERSION);
	settle(&w, 70000);
	assert_non_null(strstr(mitm_error(w.mitm), "handshake failure: it asks for a certificate"));
	assert_non_null(strstr(mitm_error(w.mitm), "--tls NAME=passthrough"));
	end(&w);
}

static void test_program_refuses(void **state)
{
	struct world w;

	begin(&w, &(struct plan){.upstream = world_ca, .agree = "h2", .who = stranger});
	settle(&w, 70000);
	assert_string_equal(mitm_error(w.mitm),
		"the program does not accept this sandbox's CA: alert unknown CA");
	assert_true(mitm_has_failed(w.mitm));
	assert_true(mitm_machine.wants_end(w.mitm, MACHINE_CLIENT));
	assert_true(mitm_machine.wants_end(w.mitm, MACHINE_SERVER));
	assert_int_equal(w.inner.n_opened, 0);
	end(&w);
}

static void test_silent_close(void **state)
{
	for (int orderly = 0; orderly < 2; orderly++) {
		struct world w;

		begin(&w, &(struct plan){.upstream = world_ca, .agree = "http/1.1"});
		settle(&w, 70000);
		if (orderly)
			tls_end_close(w.program);
		settle(&w, 70000);
		if (!orderly)
			mitm_machine.end(w.mitm, MACHINE_CLIENT);
		settle(&w, 70000);
		assert_string_equal(mitm_error(w.mitm),
			"the program closed right after the handshake: it may not trust this "
			"sandbox's CA");
		assert_false(mitm_has_failed(w.mitm));
		end(&w);
	}
}

static void test_program_leaves_early(void **state)
{
	struct world w;

	begin(&w, &(struct plan){.upstream = world_ca, .agree = "http/1.1"});
	mitm_machine.end(w.mitm, MACHINE_CLIENT);
	assert_true(mitm_machine.wants_end(w.mitm, MACHINE_SERVER));
	assert_string_equal(mitm_error(w.mitm), "the program closed before the handshake");
	end(&w);

	begin(&w, &(struct plan){.upstream = world_ca, .agree = "http/1.1"});
	while (from_mitm(&w, MACHINE_SERVER, w.upstream, 70000) |
		to_mitm(&w, MACHINE_SERVER, w.upstream, 70000))
		;
	assert_true(to_mitm(&w, MACHINE_CLIENT, w.program, 100));
	mitm_machine.end(w.mitm, MACHINE_CLIENT);
	assert_string_equal(mitm_error(w.mitm),
		"the program closed during the handshake: it may not trust this sandbox's CA");
	end(&w);
}

/* Until upstream is verified nothing of the program's is taken, so nothing of it can leak. */
static void test_waits_for_upstream(void **state)
{
	struct world w;
	struct slice hello;

	begin(&w, &(struct plan){.upstream = world_ca, .agree = "h2"});
	hello = tls_end_cipher(w.program);
	assert_int_equal((mitm_machine.take)(w.mitm, MACHINE_CLIENT, hello.p, hello.len), 0);
	assert_int_equal(mitm_machine.peek(w.mitm, MACHINE_CLIENT).len, 0);
	assert_true(mitm_machine.peek(w.mitm, MACHINE_SERVER).len > 100);
	settle(&w, 70000);
	assert_int_equal(tls_end_state(w.program), TLS_END_OPEN);
	end(&w);
}

static void test_without_upstream(void **state)
{
	static const char *const offers[][2] = {
		{"\2h2\10http/1.1", "http/1.1"}, {"\2h2", "h2"}, {"", ""}};

	for (size_t i = 0; i < 3; i++) {
		struct world w;

		begin(&w, &(struct plan){.offer = offers[i][0]});
		settle(&w, 70000);
		assert_int_equal(tls_end_state(w.program), TLS_END_OPEN);
		assert_string_equal(w.inner.alpn, offers[i][1]);
		assert_true(mitm_machine.wants_end(w.mitm, MACHINE_SERVER));
		end(&w);
	}
}

/* One who asks for no name may know the host by its address. */
static void test_no_name(void **state)
{
	struct world w;

	begin(&w, &(struct plan){.upstream = world_ca, .agree = "h2", .no_name = true});
	settle(&w, 70000);
	assert_int_equal(tls_end_state(w.program), TLS_END_OPEN);
	end(&w);
}

static void test_garbage(void **state)
{
	struct world w;

	begin(&w, &(struct plan){.upstream = world_ca, .agree = "h2"});
	assert_int_equal((mitm_machine.take)(w.mitm, MACHINE_SERVER, "HTTP/1.1 400 X\r\n", 16), 16);
	assert_string_equal(mitm_error(w.mitm), "TLS with upstream failed: wrong version number");
	settle(&w, 70000);
	assert_int_equal(tls_end_failure(w.program), TLS_END_ALERT);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_intercepts),
		cmocka_unit_test(test_carries_and_ends), cmocka_unit_test(test_passes_on_a_cut),
		cmocka_unit_test(test_bad_certificate), cmocka_unit_test(test_certificate_asked),
		cmocka_unit_test(test_program_refuses), cmocka_unit_test(test_silent_close),
		cmocka_unit_test(test_program_leaves_early),
		cmocka_unit_test(test_waits_for_upstream), cmocka_unit_test(test_without_upstream),
		cmocka_unit_test(test_no_name), cmocka_unit_test(test_garbage)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
