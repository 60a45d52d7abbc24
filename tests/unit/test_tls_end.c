/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends of TLS in one process: what one says the other hears, and what goes wrong has a name. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "authority.h"
#include "gateway/ca.h"
#include "gateway/leaf.h"
#include "gateway/tls_client.h"
#include "gateway/tls_end_internal.h"
#include "util/mem.h"

#define NO_ROOTS "/nonexistent"
#define MUCH     (1 << 20)

static struct authority ours, other;
static struct ca *ca;
static struct tls_client *trusting, *foreign; /* those who know `ours`, and those who do not */

static int setup(void **state)
{
	authority_make(&ours, "ours");
	authority_make(&other, "other");
	assert_int_equal(ca_new(slice_of(ours.key_hex), str_slice(&ours.base64), &ca, NULL), 0);
	assert_int_equal(tls_client_new(NO_ROOTS, ours.pem.p, &trusting, NULL), 0);
	assert_int_equal(tls_client_new(NO_ROOTS, other.pem.p, &foreign, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	ca_free(ca);
	tls_client_free(trusting);
	tls_client_free(foreign);
	authority_done(&ours);
	authority_done(&other);
	return 0;
}

/* Hands over in small pieces, as a network may. */
static bool carry(struct tls_end *from, struct tls_end *to, size_t piece)
{
	struct slice s = tls_end_cipher(from);
	size_t n = s.len < piece ? s.len : piece;

	n = n ? tls_end_put(to, s.p, n) : 0;
	if (n)
		tls_end_sent(from, n);
	return n > 0;
}

static void settle(struct tls_end *a, struct tls_end *b, size_t piece)
{
	while (carry(a, b, piece) | carry(b, a, piece))
		;
}

struct pair {
	struct tls_end *client, *server;
};

static struct pair shake(struct tls_client *who, const char *host, const char *as,
	const char *offer, const char *agree, size_t piece)
{
	const struct tls_target target = {.host = host, .alpn = slice_of(offer)};
	struct pair p = {.client = tls_client_connect(who, &target),
		.server = ca_accept(ca, &(struct ca_name){.host = as}, agree)};

	assert_non_null(p.client);
	assert_non_null(p.server);
	settle(p.client, p.server, piece);
	return p;
}

static void end(struct pair *p)
{
	tls_end_free(p->client);
	tls_end_free(p->server);
}

static void test_agrees(void **state)
{
	static const struct {
		const char *offer, *agree, *result;
	} rows[] = {{"\2h2\10http/1.1", "h2", "h2"}, {"\2h2\10http/1.1", "http/1.1", "http/1.1"},
		{"\10http/1.1", "h2", ""}, {"", "h2", ""}, {"\2h2", "", ""}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t piece = 1; piece < 20000; piece = piece * 17 + 1) {
			struct pair p = shake(trusting, "allowed.test", "allowed.test",
				rows[i].offer, rows[i].agree, piece);

			assert_int_equal(tls_end_state(p.client), TLS_END_OPEN);
			assert_int_equal(tls_end_state(p.server), TLS_END_OPEN);
			assert_string_equal(tls_end_alpn(p.client), rows[i].result);
			assert_string_equal(tls_end_alpn(p.server), rows[i].result);
			assert_string_equal(tls_end_reason(p.server), "");
			end(&p);
		}
}

static unsigned char byte_at(size_t i)
{
	return (unsigned char)(i * 7 + i / 251);
}

/* All of it from one to the other, the reader taking `bite` at a time. */
static void send_much(struct tls_end *from, struct tls_end *to, size_t bite)
{
	char *text = mem_zero(1, MUCH);
	size_t sent = 0, got = 0;

	for (size_t i = 0; i < MUCH; i++)
		text[i] = (char)byte_at(i);
	while (got < MUCH) {
		struct slice s;
		size_t n;

		sent += tls_end_write(from, text + sent, MUCH - sent);
		assert_true(tls_end_cipher(from).len < 5 * 17000);
		carry(from, to, 30000);
		s = tls_end_plain(to);
		n = s.len < bite ? s.len : bite;
		assert_memory_equal(s.p ? s.p : "", text + got, n);
		got += n;
		tls_end_took(to, n);
	}
	assert_int_equal(sent, MUCH);
	assert_int_equal(tls_end_plain(to).len, 0);
	free(text);
}

static void test_carries(void **state)
{
	static const size_t bites[] = {100, 16384, 70000};

	for (size_t i = 0; i < sizeof(bites) / sizeof(bites[0]); i++) {
		struct pair p = shake(trusting, "a.test", "a.test", "", "", 70000);

		send_much(p.client, p.server, bites[i]);
		send_much(p.server, p.client, bites[i]);
		end(&p);
	}
}

/* Who does not read is not sent more and more. */
static void test_holds_back(void **state)
{
	struct pair p = shake(trusting, "a.test", "a.test", "", "", 70000);
	char text[10000] = {0};
	size_t sent = 0, n;

	while ((n = tls_end_write(p.client, text, sizeof(text))) > 0)
		sent += n;
	assert_in_range(sent, 32768, 3 * 16384);
	while (carry(p.client, p.server, 70000))
		;
	assert_in_range(tls_end_plain(p.server).len, 1, 16384);
	assert_true(tls_end_cipher(p.client).len > 10000);
	while ((n = tls_end_plain(p.server).len) > 0) {
		sent -= n;
		tls_end_took(p.server, n);
		carry(p.client, p.server, 70000);
	}
	assert_int_equal(sent, 0);
	end(&p);
}

static void test_closes(void **state)
{
	struct pair p = shake(trusting, "a.test", "a.test", "", "", 70000);

	assert_int_equal(tls_end_write(p.client, "bye", 3), 3);
	tls_end_close(p.client);
	assert_int_equal(tls_end_write(p.client, "more", 4), 0);
	settle(p.client, p.server, 70000);
	assert_false(tls_end_is_at_end(p.server));
	tls_end_took(p.server, 3);
	assert_true(tls_end_is_at_end(p.server));
	assert_false(tls_end_is_cut_off(p.server));
	/* The other direction goes on. */
	assert_int_equal(tls_end_write(p.server, "answer", 6), 6);
	settle(p.client, p.server, 70000);
	assert_true(slice_is(tls_end_plain(p.client), "answer"));
	tls_end_took(p.client, 6);
	tls_end_put_end(p.client);
	assert_true(tls_end_is_cut_off(p.client));
	end(&p);
}

static void test_refuses_a_name(void **state)
{
	struct pair p = shake(trusting, "wanted.test", "b.test", "", "", 70000);

	assert_int_equal(tls_end_state(p.client), TLS_END_FAILED);
	assert_int_equal(tls_end_failure(p.client), TLS_END_BAD_CERTIFICATE);
	assert_string_equal(tls_end_reason(p.client), "hostname mismatch");
	assert_int_equal(tls_end_failure(p.server), TLS_END_ALERT);
	assert_string_equal(tls_end_reason(p.server), "alert bad certificate");
	assert_int_equal(tls_end_put(p.server, "x", 1), 1);
	assert_int_equal(tls_end_write(p.client, "x", 1), 0);
	end(&p);
}

static void test_tells_a_refused_authority(void **state)
{
	struct pair p = shake(foreign, "a.test", "a.test", "", "", 70000);

	assert_int_equal(tls_end_failure(p.client), TLS_END_BAD_CERTIFICATE);
	assert_int_equal(tls_end_fitting_alert(p.client), SSL_AD_UNKNOWN_CA);
	assert_int_equal(tls_end_failure(p.server), TLS_END_ALERT);
	assert_string_equal(tls_end_reason(p.server), "alert unknown CA");
	end(&p);
}

static void test_older_version(void **state)
{
	const struct tls_target target = {.host = "a.test", .alpn = slice_of("\2h2")};
	struct pair p = {.client = tls_client_connect(trusting, &target),
		.server = ca_accept(ca, &(struct ca_name){.host = "a.test"}, "h2")};

	assert_int_equal(SSL_set_max_proto_version(p.server->ssl, TLS1_2_VERSION), 1);
	settle(p.client, p.server, 100);
	assert_int_equal(tls_end_state(p.client), TLS_END_OPEN);
	assert_string_equal(SSL_get_version(p.client->ssl), "TLSv1.2");
	assert_string_equal(tls_end_alpn(p.client), "h2");
	send_much(p.client, p.server, 16384);
	end(&p);
	p = (struct pair){.client = tls_client_connect(trusting, &target),
		.server = ca_accept(ca, &(struct ca_name){.host = "a.test"}, "h2")};
	SSL_set_min_proto_version(p.client->ssl, 0);
	SSL_set_max_proto_version(p.client->ssl, TLS1_1_VERSION);
	settle(p.client, p.server, 100);
	assert_int_not_equal(tls_end_state(p.server), TLS_END_OPEN);
	end(&p);
}

static void close_pair(struct pair *p)
{
	tls_end_close(p->client);
	tls_end_close(p->server);
	settle(p->client, p->server, 70000);
	end(p);
}

/* Whether one more connection takes up the session of one before. */
static bool takes_up(struct tls_client *who, const struct tls_target *target, int version)
{
	struct pair p = {.client = tls_client_connect(who, target),
		.server = ca_accept(ca, &(struct ca_name){.host = target->host}, "h2")};
	bool reused;

	assert_true(SSL_set_max_proto_version(p.server->ssl, version));
	settle(p.client, p.server, 70000);
	assert_int_equal(tls_end_state(p.client), TLS_END_OPEN);
	reused = SSL_session_reused(p.client->ssl);
	assert_int_equal(SSL_session_reused(p.server->ssl), reused);
	close_pair(&p);
	return reused;
}

static void test_takes_up_sessions(void **state)
{
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	static const uint8_t here[16] = {[15] = 1};
	const struct tls_target one = {.host = "one.test", .port = 443},
				others[] = {{.host = "two.test", .port = 443},
					{.host = "one.test", .port = 444},
					{.host = "one.test", .port = 443, .address = here},
					{.host = "one.test",
						.port = 443,
						.alpn = slice_of("\2h2")}};

	for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++) {
		scoped(tls_client) struct tls_client *who = NULL, *next = NULL;

		assert_int_equal(tls_client_new(NO_ROOTS, ours.pem.p, &who, NULL), 0);
		assert_int_equal(tls_client_new(NO_ROOTS, ours.pem.p, &next, NULL), 0);
		assert_false(takes_up(who, &one, versions[v]));
		for (int i = 0; i < 10; i++)
			assert_true(takes_up(who, &one, versions[v]));
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			assert_false(takes_up(who, &others[i], versions[v]));
		assert_false(takes_up(next, &one, versions[v])); /* it has roots of its own */
		/* More kinds than are kept: the oldest go. */
		for (int port = 0; port < 80; port++)
			assert_false(takes_up(who,
				&(struct tls_target){.host = "x.test", .port = (uint16_t)port},
				versions[v]));
		assert_false(takes_up(who, &one, versions[v]));
	}
}

/* A ticket of TLS 1.3 is used once: two connections at the same time have one between them. */
static void test_takes_up_once(void **state)
{
	const struct tls_target target = {.host = "once.test"};
	scoped(tls_client) struct tls_client *who = NULL;
	struct pair p[2];
	int n = 0;

	assert_int_equal(tls_client_new(NO_ROOTS, ours.pem.p, &who, NULL), 0);
	assert_false(takes_up(who, &target, TLS1_3_VERSION));
	for (int i = 0; i < 2; i++)
		p[i] = (struct pair){.client = tls_client_connect(who, &target),
			.server = ca_accept(ca, &(struct ca_name){.host = "once.test"}, "")};
	for (int i = 0; i < 2; i++) {
		settle(p[i].client, p[i].server, 70000);
		n += SSL_session_reused(p[i].client->ssl);
		close_pair(&p[i]);
	}
	assert_int_equal(n, 1);
}

/* What was refused once is refused again. */
static void test_no_session_of_the_refused(void **state)
{
	scoped(tls_client) struct tls_client *who = NULL;

	assert_int_equal(tls_client_new(NO_ROOTS, other.pem.p, &who, NULL), 0);
	for (int i = 0; i < 2; i++) {
		struct pair p = shake(who, "no.test", "no.test", "", "", 70000);

		assert_int_equal(tls_end_failure(p.client), TLS_END_BAD_CERTIFICATE);
		end(&p);
	}
}

static void test_cut_off(void **state)
{
	struct tls_end *server = ca_accept(ca, &(struct ca_name){.host = "a.test"}, "");

	assert_int_equal(tls_end_put(server, "\x16\x03\x01", 3), 3);
	tls_end_put_end(server);
	assert_int_equal(tls_end_failure(server), TLS_END_CUT_OFF);
	assert_string_equal(tls_end_reason(server), "closed during the handshake");
	tls_end_free(server);
}

static void test_broken(void **state)
{
	static const char *const texts[] = {"SSH-2.0-OpenSSH_9.2\r\n", "GET / HTTP/1.1\r\n\r\n",
		"\x16\x03\x01\x40\x01xxxxxxxxxxxxxxxxxxxxx", "\x17\x03\x03\x00\x02hi"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const struct tls_target target = {.host = "a.test"};
		struct tls_end *ends[] = {ca_accept(ca, &(struct ca_name){.host = "a.test"}, ""),
			tls_client_connect(trusting, &target)};

		for (size_t k = 0; k < 2; k++) {
			(void)tls_end_put(ends[k], texts[i], strlen(texts[i]));
			if (tls_end_state(ends[k]) == TLS_END_HANDSHAKE)
				tls_end_put_end(ends[k]); /* a record that does not end */
			assert_int_equal(tls_end_state(ends[k]), TLS_END_FAILED);
			assert_true(strlen(tls_end_reason(ends[k])) > 5);
			tls_end_free(ends[k]);
		}
	}
}

/* A record broken on its way: said, and nothing of it is handed over. */
static void test_altered(void **state)
{
	struct pair p = shake(trusting, "a.test", "a.test", "", "", 70000);
	char record[100];
	struct slice s;

	assert_int_equal(tls_end_write(p.client, "secret", 6), 6);
	s = tls_end_cipher(p.client);
	memcpy(record, s.p, s.len);
	record[s.len - 1] ^= 1;
	assert_int_equal(tls_end_put(p.server, record, s.len), s.len);
	assert_int_equal(tls_end_failure(p.server), TLS_END_BROKEN);
	assert_string_equal(tls_end_reason(p.server), "decryption failed or bad record mac");
	assert_int_equal(tls_end_plain(p.server).len, 0);
	end(&p);
}

static void test_addresses(void **state)
{
	static const uint8_t v4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 7},
			     v6[16] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9},
			     *both[] = {v4, v6};

	for (int i = 0; i < 4; i++) {
		const struct tls_target target = {.address = both[i / 2]};
		struct pair p = {.client = tls_client_connect(trusting, &target),
			.server = ca_accept(ca, &(struct ca_name){.address = both[i % 2]}, "")};

		settle(p.client, p.server, 70000);
		assert_int_equal(
			tls_end_state(p.client), i / 2 == i % 2 ? TLS_END_OPEN : TLS_END_FAILED);
		end(&p);
	}
}

/* One who asked for no name may know either. */
static void test_both_names(void **state)
{
	static const uint8_t v4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 8};
	const struct tls_target targets[] = {{.host = "a.test"}, {.address = v4}};

	for (int i = 0; i < 2; i++) {
		const struct ca_name name = {.host = "a.test", .address = v4};
		struct pair p = {.client = tls_client_connect(trusting, &targets[i]),
			.server = ca_accept(ca, &name, "")};

		settle(p.client, p.server, 70000);
		assert_int_equal(tls_end_state(p.client), TLS_END_OPEN);
		end(&p);
	}
}

static void test_long_names(void **state)
{
	char name[254];

	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 60 == 59 ? '.' : 'a';
	for (size_t len = 63; len <= 253; len += 19) {
		char host[sizeof(name)] = {0};
		struct pair p;

		memcpy(host, name, len - 2);
		memcpy(host + len - 2, "zz", 3);
		p = shake(trusting, host, host, "", "", 70000);
		assert_int_equal(tls_end_state(p.client), TLS_END_OPEN);
		end(&p);
	}
}

/* More names than are kept: each still works, also those that were forgotten meanwhile. */
static void test_many_names(void **state)
{
	const X509 *first = NULL;

	for (int i = 0; i <= 300; i++) {
		char host[32];
		struct pair p;

		(void)snprintf(host, sizeof(host), "n%d.test", i % 300);
		p = shake(trusting, host, host, "", "", 70000);
		assert_int_equal(tls_end_state(p.client), TLS_END_OPEN);
		if (i == 0) {
			first = SSL_get_certificate(p.server->ssl);
			struct pair again = shake(trusting, host, host, "", "", 70000);

			assert_ptr_equal(SSL_get_certificate(again.server->ssl), first);
			end(&again);
		}
		end(&p);
	}
}

static void test_leaf(void **state)
{
	const struct ca_name name = {.host = "a.test"};
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = leaf_new(&name, key, ours.x, ours.key);
	int days, seconds;

	assert_non_null(x);
	ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(x), X509_get0_notAfter(x));
	assert_in_range(days, 7, 29);
	assert_true(X509_cmp_current_time(X509_get0_notBefore(x)) < 0);
	assert_int_equal(X509_verify(x, ours.key), 1);
	assert_int_equal(X509_check_issued(ours.x, x), X509_V_OK);
	assert_int_equal(X509_check_ca(x), 0);
	X509_free(x);
	EVP_PKEY_free(key);
}

/* Upstream's certificate as it may be: expired, for others, of nobody known. */
static void test_bad_upstream(void **state)
{
	const struct ca_name name = {.host = "a.test"};
	const struct tls_target target = {.host = "a.test"};
	SSL_CTX *ctx = tls_end_context(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	static const struct {
		long from, to;
		bool is_foreign;
		const char *reason;
		int alert;
	} rows[] = {{-7200, -3600, false, "certificate has expired", SSL_AD_CERTIFICATE_EXPIRED},
		{3600, 7200, false, "certificate is not yet valid", SSL_AD_CERTIFICATE_EXPIRED},
		{-3600, 3600, true, "unable to get local issuer certificate", SSL_AD_UNKNOWN_CA}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct authority *by = rows[i].is_foreign ? &other : &ours;
		X509 *x = leaf_new(&name, key, by->x, by->key);
		struct pair p = {.client = tls_client_connect(trusting, &target),
			.server = tls_end_new(ctx, true, "")};

		X509_gmtime_adj(X509_getm_notBefore(x), rows[i].from);
		X509_gmtime_adj(X509_getm_notAfter(x), rows[i].to);
		X509_sign(x, by->key, EVP_sha256());
		SSL_use_certificate(p.server->ssl, x);
		SSL_use_PrivateKey(p.server->ssl, key);
		settle(p.client, p.server, 70000);
		assert_int_equal(tls_end_failure(p.client), TLS_END_BAD_CERTIFICATE);
		assert_string_equal(tls_end_reason(p.client), rows[i].reason);
		assert_int_equal(tls_end_fitting_alert(p.client), rows[i].alert);
		end(&p);
		X509_free(x);
	}
	EVP_PKEY_free(key);
	SSL_CTX_free(ctx);
}

static void test_bad_authority(void **state)
{
	struct ca *none = NULL;
	struct tls_client *client = NULL;
	struct err err = {0};
	char half[33] = {0};

	memcpy(half, ours.key_hex, 32);
	assert_int_equal(
		ca_new(slice_of(other.key_hex), str_slice(&ours.base64), &none, &err), -EBADMSG);
	assert_int_equal(ca_new(slice_of(half), str_slice(&ours.base64), &none, &err), -EBADMSG);
	assert_int_equal(ca_new(slice_of(ours.key_hex), slice_of("AAAA"), &none, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "authority"));
	assert_int_equal(tls_client_new(NULL, "no PEM", &client, &err), -EINVAL);
	assert_string_equal(err.msg, "the upstream CA holds no certificate in PEM");
	assert_null(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_agrees),
		cmocka_unit_test(test_carries), cmocka_unit_test(test_holds_back),
		cmocka_unit_test(test_closes), cmocka_unit_test(test_refuses_a_name),
		cmocka_unit_test(test_tells_a_refused_authority),
		cmocka_unit_test(test_older_version), cmocka_unit_test(test_takes_up_sessions),
		cmocka_unit_test(test_takes_up_once),
		cmocka_unit_test(test_no_session_of_the_refused), cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_broken), cmocka_unit_test(test_altered),
		cmocka_unit_test(test_addresses), cmocka_unit_test(test_both_names),
		cmocka_unit_test(test_long_names), cmocka_unit_test(test_many_names),
		cmocka_unit_test(test_leaf), cmocka_unit_test(test_bad_upstream),
		cmocka_unit_test(test_bad_authority)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
