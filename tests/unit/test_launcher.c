/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/x509v3.h>
#include <cmocka.h>

#include "launcher/authority.h"
#include "launcher/handover.h"
#include "launcher/hostkey.h"
#include "launcher/ledger.h"
#include "launcher/seal.h"
#include "record/record_head.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"

static int set_up(void **state)
{
	char *top = mem_dup("/tmp/cloche-launcher-XXXXXX");

	*state = top;
	return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
	path_remove_all(AT_FDCWD, *state);
	free(*state);
	return 0;
}

static void test_public_key_of_another(void **state)
{
	scoped_mem char *secret = mem_printf("%s/host.key", (char *)*state);
	scoped_mem char *public = mem_printf("%s/host.pub", (char *)*state);
	scoped(hostkey) struct hostkey *key = NULL;
	scoped_str struct str signature = {0};
	struct err err;

	assert_int_equal(hostkey_open(*state, &key, &err), 0);
	hostkey_free(take(&key));
	unlink(secret);
	assert_int_equal(hostkey_open(*state, &key, &err), 0);
	assert_int_equal(hostkey_warm(key), -EKEYREJECTED);
	assert_int_equal(hostkey_sign(key, "x", 1, &signature), -EKEYREJECTED);
	hostkey_free(take(&key));
	unlink(public);
	assert_int_equal(hostkey_open(*state, &key, &err), 0);
	assert_int_equal(hostkey_warm(key), 0);
}

/* RFC 8032, 7.1, test 2: a key, a message of one byte, its signature. */
static void test_known_signature(void **state)
{
	static const char pem[] =
		"-----BEGIN PRIVATE KEY-----\n"
		"MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
		"-----END PRIVATE KEY-----\n";
	static const char want[] = "kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ"
				   "8R2MOHsurrQwKu6wDSkWErsMAA==";
	int dirfd = open(*state, O_RDONLY | O_DIRECTORY);
	scoped(hostkey) struct hostkey *key = NULL;
	scoped_str struct str signature = {0}, public = {0};
	struct err err;

	assert_int_equal(fdio_replace(dirfd, "host.key", pem, strlen(pem), 0600), 0);
	assert_int_equal(hostkey_open(*state, &key, &err), 0);
	assert_string_equal(
		hostkey_public_b64(key), "PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=");
	assert_int_equal(hostkey_sign(key, "\x72", 1, &signature), 0);
	assert_string_equal(signature.p, want);
	assert_int_equal(hostkey_check(hostkey_public_b64(key), "\x72", 1, signature.p), 0);
	assert_int_equal(hostkey_check(hostkey_public_b64(key), "\x73", 1, signature.p), -EBADMSG);
	assert_int_equal(hostkey_check("", "\x72", 1, signature.p), -EBADMSG);
	signature.p[3] ^= 1;
	assert_int_equal(hostkey_check(hostkey_public_b64(key), "\x72", 1, signature.p), -EBADMSG);
	assert_int_equal(hostkey_read_public(*state, &public, &err), 0);
	assert_string_equal(public.p, hostkey_public_b64(key));
	close(dirfd);
}

static void test_key_is_made_once(void **state)
{
	scoped(hostkey) struct hostkey *a = NULL, *b = NULL;
	scoped_mem char *path = mem_printf("%s/host.key", (char *)*state);
	scoped_str struct str text = {0};
	struct stat st;
	struct err err;

	assert_int_equal(hostkey_open(*state, &a, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(hostkey_open(*state, &b, &err), 0);
	assert_string_equal(hostkey_public_b64(a), hostkey_public_b64(b));
	assert_int_equal(strlen(hostkey_fingerprint(a)), 47);
	assert_int_equal(fdio_read_file(AT_FDCWD, path, 4096, &text), 0);
	assert_true(slice_starts(str_slice(&text), "-----BEGIN PRIVATE KEY-----\n"));
	assert_int_equal(truncate(path, 40), 0);
	hostkey_free(take(&b));
	assert_int_equal(hostkey_open(*state, &b, &err), -EBADMSG);
}

static void append(
	const char *dir, const char *act, const char *sandbox, const char *head, uint64_t seq)
{
	struct ledger_line line = {.act = act,
		.sandbox = sandbox,
		.head = head,
		.seq = seq,
		.actor = "uid:7",
		.detail = "x\"\n",
		.owner = 7,
		.at_ms = 1000};
	struct err err = {0};

	if (ledger_append(dir, &line, &err) < 0)
		fail_msg("%s", err.msg);
}

static int add_line(void *ctx, const struct ledger_line *line)
{
	str_printf(ctx, "%s %s %llu %u %lld;", line->act, line->sandbox,
		(unsigned long long)line->seq, line->owner, (long long)line->at_ms);
	return strcmp(line->act, "stop") == 0 ? 5 : 0;
}

static void test_ledger(void **state)
{
	scoped_mem char *path = mem_printf("%s/ledger.jsonl", (char *)*state);
	scoped_str struct str seen = {0};
	char head[LEDGER_HEAD_SIZE];
	uint64_t seq;
	struct err err;
	int fd;

	assert_int_equal(ledger_walk(*state, add_line, &seen, &err), 0);
	assert_int_equal(seen.len, 0);
	append(*state, "open", "sb_a", NULL, 0);
	append(*state, "end", "sb_a", "abcd", 9);
	append(*state, "head", "sb_b", "ef", 1);
	fd = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "{\"v\":1,", 7), 7);
	close(fd);
	append(*state, "stop", "sb_b", NULL, 0);
	append(*state, "open", "sb_c", NULL, 0);
	assert_int_equal(ledger_walk(*state, add_line, &seen, &err), 5);
	assert_string_equal(seen.p,
		"open sb_a 0 7 1000;end sb_a 9 7 1000;head sb_b 1 7 1000;stop sb_b 0 7 1000;");
	assert_int_equal(ledger_find_head(*state, "sb_a", head, &seq, &err), 0);
	assert_string_equal(head, "abcd");
	assert_int_equal(seq, 9);
	assert_int_equal(ledger_find_head(*state, "sb_c", head, &seq, &err), -ENOENT);
}

static int pass(void *ctx, const struct ledger_line *line)
{
	return 0;
}

static void test_ledger_tampered(void **state)
{
	static const struct {
		const char *sed, *want;
	} cases[] = {
		{"s/sb_b/sb_x/", "the ledger's chain breaks before line 3: a line there was "
				 "changed, added or removed"},
		{"2d", "the ledger's chain breaks before line 2: a line there was changed, added "
		       "or removed"},
		{"1d", "the ledger does not begin with its first line"},
		{"2s/.*/nonsense/", "line 2 of the ledger is none of ours"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scoped_mem char *path = mem_printf("%s/ledger.jsonl", (char *)*state);
		scoped_mem char *command = mem_printf("sed -i '%s' %s", cases[i].sed, path);
		struct err err = {0};
		FILE *pipe;

		append(*state, "open", "sb_a", NULL, 0);
		append(*state, "open", "sb_b", NULL, 0);
		append(*state, "open", "sb_c", NULL, 0);
		pipe = popen(command, "r");
		assert_non_null(pipe);
		assert_int_equal(pclose(pipe), 0);
		assert_int_equal(ledger_walk(*state, pass, NULL, &err), -EBADMSG);
		assert_string_equal(err.msg, cases[i].want);
		assert_int_equal(unlink(path), 0);
	}
}

static void ask(
	void **state, struct hostkey *key, int pair[2], const char *text, struct str *answer)
{
	struct err err = {0};

	assert_int_equal(send(pair[0], text, strlen(text), 0), strlen(text));
	assert_int_equal(seal_serve_one(pair[1], key, *state, "sb_a", &err), 0);
	str_reset(answer);
	str_reserve(answer, 1024);
	answer->len = (size_t)recv(pair[0], answer->p, 1024, 0);
	answer->p[answer->len] = '\0';
}

static void test_seal(void **state)
{
	struct record_head head = {.seq = 12, .events = 12, .end = RECORD_FINAL};
	scoped_str struct str text = {0}, answer = {0}, seen = {0}, want = {0}, signature = {0};
	scoped_mem char *ledger = mem_printf("%s/ledger.jsonl", (char *)*state);
	scoped(hostkey) struct hostkey *key = NULL;
	struct err err;
	int pair[2];

	memset(head.log, 'a', DIGEST_HEX_LEN);
	memset(head.trace, 'b', DIGEST_HEX_LEN);
	assert_int_equal(hostkey_open(*state, &key, &err), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	record_head_text(&head, "sb_a", &text);
	ask(state, key, pair, text.p, &answer);
	hostkey_sign(key, text.p, text.len, &signature);
	str_printf(&want, "{\"signature\":\"%s\",\"key\":\"%s\",\"fingerprint\":\"%s\"}",
		signature.p, hostkey_public_b64(key), hostkey_fingerprint(key));
	assert_string_equal(answer.p, want.p);
	str_reset(&text);
	record_head_text(&head, "sb_b", &text);
	ask(state, key, pair, text.p, &answer);
	assert_string_equal(answer.p, "{\"error\":\"this head is another sandbox's\"}");
	ask(state, key, pair, "cloche record 1\n", &answer);
	assert_string_equal(answer.p, "{\"error\":\"this is no head of a record\"}");
	unlink(ledger);
	assert_int_equal(mkdir(ledger, 0700), 0);
	str_reset(&text);
	record_head_text(&head, "sb_a", &text);
	ask(state, key, pair, text.p, &answer); /* and goes on serving */
	assert_true(slice_starts(str_slice(&answer), "{\"error\":"));
	rmdir(ledger);
	ask(state, key, pair, text.p, &answer);
	assert_string_equal(answer.p, want.p);
	close(pair[0]);
	assert_int_equal(seal_serve_one(pair[1], key, *state, "sb_a", &err), -EPIPE);
	close(pair[1]);
	assert_int_equal(ledger_walk(*state, add_line, &seen, &err), 0);
	assert_true(slice_starts(str_slice(&seen), "end sb_a 12 4294967295 "));
	assert_null(strchr(seen.p, ';')[1] ? "only one" : NULL);
}

/* What OpenSSL itself makes of the certificate that we put together. */
static void check_certificate(const struct str *trust, X509 **ret)
{
	const unsigned char *der = (const unsigned char *)trust->p + 8;
	char link[9], text[64] = {0};
	int ok = 0, days, seconds;
	X509 *x = d2i_X509(NULL, &der, (long)trust->len - 8);

	assert_non_null(x);
	assert_ptr_equal(der, trust->p + trust->len);
	assert_int_equal(X509_verify(x, X509_get0_pubkey(x)), 1);
	assert_int_equal(X509_check_ca(x), 1);
	assert_int_equal(X509_get_pathlen(x), 0);
	assert_int_equal(X509_get_key_usage(x), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
	assert_true(X509_get_extension_flags(x) & EXFLAG_SI);
	assert_true(X509_cmp_current_time(X509_get0_notBefore(x)) < 0);
	ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(x));
	assert_true(days > 3000);
	X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, text, sizeof(text));
	assert_string_equal(text, "Cloche sandbox sb_0123456789abcdef");
	(void)snprintf(link, sizeof(link), "%08lx",
		X509_NAME_hash_ex(X509_get_subject_name(x), NULL, NULL, &ok));
	assert_memory_equal(trust->p, link, 8);
	*ret = x;
}

static void test_authority(void **state)
{
	struct str hidden[2] = {{0}, {0}}, trust[2] = {{0}, {0}};
	X509 *x[2];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			authority_make("sb_0123456789abcdef", &hidden[i], &trust[i], NULL), 0);
		check_certificate(&trust[i], &x[i]);
		assert_true(slice_starts(str_slice(&hidden[i]), "{\"ca\":{\"key\":\""));
		assert_true(slice_ends(str_slice(&hidden[i]), "\"}}\n"));
	}
	/* Nothing is the same in two of them but the name. */
	assert_int_equal(X509_verify(x[0], X509_get0_pubkey(x[1])), 0);
	assert_memory_not_equal(hidden[0].p, hidden[1].p, 100);
	assert_int_not_equal(
		ASN1_INTEGER_cmp(X509_get0_serialNumber(x[0]), X509_get0_serialNumber(x[1])), 0);
	for (int i = 0; i < 2; i++) {
		X509_free(x[i]);
		str_done(&hidden[i]);
		str_done(&trust[i]);
	}
}

static void test_handover(void **state)
{
	struct spec_network network;
	struct handover h;
	scoped_str struct str lines = {0}, trust = {0};

	spec_network_init(&network);
	network.net = SPEC_NET_NONE;
	assert_int_equal(handover_open(&h, &network, 40, NULL), 0);
	assert_int_equal(h.secrets_fd, -1);
	assert_int_equal(handover_fill(&h, "sb_0123456789abcdef", NULL), 0);
	network.net = SPEC_NET_OPEN;
	network.proxy_user = mem_dup("me");
	network.proxy_password = mem_dup("word");
	assert_int_equal(handover_open(&h, &network, 40, NULL), 0);
	assert_true(h.secrets_fd >= 40 && h.trust_fd >= 40);
	assert_int_equal(handover_fill(&h, "sb_0123456789abcdef", NULL), 0);
	/* Whole, for whoever reads it from the start, and never changed again. */
	assert_int_equal(lseek(h.secrets_fd, 0, SEEK_SET), 0);
	assert_int_equal(fdio_read_all(h.secrets_fd, 65536, &lines), 0);
	assert_non_null(strstr(lines.p, "\"password\":\"word\""));
	assert_non_null(strstr(lines.p, "\n{\"ca\":"));
	assert_int_equal(write(h.secrets_fd, "x", 1), -1);
	assert_int_equal(fdio_read_all(h.trust_fd, 65536, &trust), 0);
	assert_true(trust.len > 300);
	handover_done(&h);
	spec_network_done(&network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_authority),
		cmocka_unit_test(test_handover),
		cmocka_unit_test_setup_teardown(test_known_signature, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_key_is_made_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_public_key_of_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ledger, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ledger_tampered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_seal, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
