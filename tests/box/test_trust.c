/* SPDX-License-Identifier: Apache-2.0 */
/* What is laid over roots of several kinds so that programs inside trust their gateway. Needs root, for the mount. */
#define OPENSSL_API_COMPAT 0x10100000L
#include <errno.h>
#include <fcntl.h>
#include <openssl/pkcs12.h>
#include <openssl/sha.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "sandbox/layer.h"
#include "sandbox/trust.h"
#include "sandbox/trust_java.h"
#include "util/base64.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"

#define OWNER 1000000u
#define SOURCE \
	"0a1b2c3d" \
	"DER of a certificate"
#define PEM "-----BEGIN CERTIFICATE-----\nREVSIG9mIGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n"

static char root[] = "/tmp/cloche-trust-XXXXXX";

static int make_root(void **state)
{
	(void)snprintf(root, sizeof(root), "/tmp/cloche-trust-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	return path_remove_all(AT_FDCWD, root);
}

static void put(const char *path, const void *p, size_t len)
{
	scoped_mem char *full = mem_printf("%s/%s", root, path);
	scoped_mem char *above = mem_dup(full);
	scoped_fd int fd = -1;

	*strrchr(above, '/') = '\0';
	assert_int_equal(path_make_all(above, 0755), 0);
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	assert_true(fd >= 0);
	assert_int_equal(fdio_write_all(fd, p, len), 0);
}

static void put_link(const char *path, const char *to)
{
	scoped_mem char *full = mem_printf("%s/%s", root, path);

	put(path, "", 0); /* for the folders */
	assert_int_equal(unlink(full), 0);
	assert_int_equal(symlink(to, full), 0);
}

static int begin_in(
	struct trust *t, const struct trust_root *view, const char *source, struct err *err)
{
	int pair[2];

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	trust_begin(t, view, pair[0]);
	assert_int_equal(fdio_write_all(pair[1], source, strlen(source)), 0);
	close(pair[1]);
	return trust_finish(t, err);
}

static int begin(struct trust *t, const char *source, struct err *err)
{
	const struct trust_root view = {.path = root, .fd = -1, .owner = OWNER};

	return begin_in(t, &view, source, err);
}

static void read_over(const struct trust *t, const char *path, struct str *out, struct stat *st)
{
	if (fdio_read_file(t->fd, path, 1 << 20, out) < 0)
		fail_msg("'%s' is not there", path);
	assert_int_equal(fstatat(t->fd, path, st, 0), 0);
}

static bool is_there(const struct trust *t, const char *path)
{
	return faccessat(t->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void expect(const struct trust *t, const char *path, const char *text, mode_t mode)
{
	scoped_str struct str have = {0};
	struct stat st;

	read_over(t, path, &have, &st);
	assert_string_equal(have.p, text);
	assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(st.st_uid, OWNER);
	assert_int_equal(st.st_gid, OWNER);
}

static void expect_env(const struct trust *t, const char *pair)
{
	struct spec_words env = {0};
	bool found = false;

	trust_add_env(t, &env);
	for (size_t i = 0; i < env.n; i++)
		found = found || strcmp(env.items[i], pair) == 0;
	spec_words_done(&env);
	if (!found)
		fail_msg("no variable %s", pair);
}

static void test_debian(void **state)
{
	struct trust t;
	struct err err;
	char target[64] = {0};

	put("etc/ssl/certs/ca-certificates.crt", "usual roots", 11);
	assert_int_equal(begin(&t, SOURCE, &err), 0);
	expect(&t, "etc/ssl/certs/ca-certificates.crt", "usual roots\n" PEM, 0640);
	expect(&t, "etc/ssl/certs/cloche-sandbox.pem", PEM, 0644);
	assert_true(readlinkat(t.fd, "etc/ssl/certs/0a1b2c3d.0", target, sizeof(target)) > 0);
	assert_string_equal(target, "cloche-sandbox.pem");
	expect(&t, "etc/resolv.conf", "nameserver 10.0.0.53\n", 0644);
	assert_true(is_there(&t, "etc/ca-certificates/update.d/cloche-sandbox"));
	assert_false(is_there(&t, "etc/pki"));
	assert_false(is_there(&t, "etc/ssl/certs/java"));
	expect_env(&t, "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt");
	expect_env(&t, "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/cloche-sandbox.pem");
	trust_done(&t);
}

/* Shared layers: a link from one into another, owners that are the sandbox's already. */
static void test_shared_layers(void **state)
{
	scoped_mem char *top = mem_printf("%s/layers/top", root),
			*bottom = mem_printf("%s/layers/bottom", root);
	scoped_mem char *bundle = mem_printf("%s/etc/pki/tls/certs/ca-bundle.crt", bottom);
	scoped_fd int dir_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct layer_lower lowers[] = {{top, OWNER, -1}, {bottom, OWNER, -1}};
	const struct layer layer = {.dir_fd = dir_fd,
		.prefix = "root.",
		.over_fd = -1,
		.lowers = lowers,
		.n_lowers = 2};

	put("layers/bottom/etc/pki/tls/certs/ca-bundle.crt", "below\n", 6);
	put("layers/bottom/etc/ssl/cert.pem", "hidden", 6);
	put_link("layers/top/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt");
	assert_int_equal(chown(bundle, OWNER + 5, OWNER + 6), 0);
	for (int old = 0; old < 2; old++) {
		struct trust_root view = {.owner = OWNER};
		scoped_str struct str have = {0};
		struct trust t;
		struct stat st;
		struct err err;

		if (old)
			assert_int_equal(setenv("CLOCHE_OLD_OVERLAY", "1", 1), 0);
		view.fd = layer_open_below(&layer, &err);
		if (view.fd < 0)
			fail_msg("%s", err.msg);
		assert_int_equal(begin_in(&t, &view, SOURCE, &err), 0);
		read_over(&t, "etc/pki/tls/certs/ca-bundle.crt", &have, &st);
		assert_string_equal(have.p, "below\n" PEM);
		assert_int_equal(st.st_uid, OWNER + 5);
		assert_int_equal(st.st_gid, OWNER + 6);
		assert_false(is_there(&t, "etc/ssl/cert.pem"));
		expect_env(&t, "SSL_CERT_FILE=/etc/ssl/cert.pem");
		trust_done(&t);
	}
	assert_int_equal(unsetenv("CLOCHE_OLD_OVERLAY"), 0);
}

/* Links inside lead inside; the same file by two names is written once. */
static void test_links(void **state)
{
	struct trust t;
	struct err err;

	put("etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "R\n", 2);
	put("etc/pki/ca-trust/source/anchors/x", "", 0);
	put_link("etc/pki/tls/certs/ca-bundle.crt",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem");
	put_link("etc/ssl/certs", "../pki/tls/certs");
	put_link("etc/ssl/cert.pem", "/../../../../../../../../etc/hostname");
	assert_int_equal(begin(&t, SOURCE, &err), 0);
	expect(&t, "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "R\n" PEM, 0640);
	expect(&t, "etc/pki/tls/certs/cloche-sandbox.pem", PEM, 0644);
	expect(&t, "etc/pki/ca-trust/source/anchors/cloche-sandbox.pem", PEM, 0644);
	assert_false(is_there(&t, "etc/ssl"));
	assert_false(is_there(&t, "etc/hostname"));
	expect_env(&t, "SSL_CERT_FILE=/etc/pki/tls/certs/ca-bundle.crt");
	trust_done(&t);
}

static void test_empty(void **state)
{
	struct trust t;
	struct err err;

	assert_int_equal(begin(&t, SOURCE, &err), 0);
	expect(&t, "etc/ssl/certs/ca-certificates.crt", PEM, 0644);
	expect_env(&t, "CURL_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt");
	trust_done(&t);
}

/* What a root has in these places stays what it is. */
static void test_strange(void **state)
{
	struct trust t;
	struct err err;

	put_link("etc/ssl", "/nowhere");
	put("etc/ca-certificates", "a file", 6);
	put_link("usr/lib/jvm", "jvm");
	assert_int_equal(begin(&t, SOURCE, &err), 0);
	assert_false(is_there(&t, "etc/ssl"));
	assert_false(is_there(&t, "etc/ca-certificates"));
	assert_true(is_there(&t, "etc/resolv.conf"));
	trust_done(&t);
}

static void test_no_certificate(void **state)
{
	struct trust t;
	struct err err;

	assert_int_equal(begin(&t, "", &err), -EIO);
	assert_string_equal(err.msg, "read the gateway's certificate: whoever makes it did not");
	trust_done(&t);
	trust_begin(&t, &(struct trust_root){.path = root, .fd = -1, .owner = OWNER}, -1);
	assert_int_equal(trust_finish(&t, &err), 0);
	assert_int_equal(t.fd, -1);
	trust_done(&t);
}

/* An empty keystore of Java: no entries, and the digest of that. */
static void make_keystore(unsigned char ret[32])
{
	static const unsigned char head[12] = {0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0, 0};
	static const char before[] = "\0c\0h\0a\0n\0g\0e\0i\0tMighty Aphrodite";
	SHA_CTX sha;

	memcpy(ret, head, sizeof(head));
	SHA1_Init(&sha);
	SHA1_Update(&sha, before, sizeof(before) - 1);
	SHA1_Update(&sha, head, sizeof(head));
	SHA1_Final(ret + sizeof(head), &sha);
}

static void check_keystore(const struct str *store)
{
	static const char before[] = "\0c\0h\0a\0n\0g\0e\0i\0tMighty Aphrodite";
	unsigned char digest[20];
	SHA_CTX sha;

	assert_true(store->len > 32);
	assert_memory_equal(store->p + 8, "\0\0\0\1", 4);
	assert_memory_equal(store->p + 12,
		"\0\0\0\2\0\x0e"
		"cloche-sandbox",
		20);
	assert_memory_equal(store->p + 40,
		"\0\5X.509\0\0\0\x14"
		"DER of a certificate",
		31);
	SHA1_Init(&sha);
	SHA1_Update(&sha, before, sizeof(before) - 1);
	SHA1_Update(&sha, store->p, store->len - sizeof(digest));
	SHA1_Final(digest, &sha);
	assert_memory_equal(store->p + store->len - sizeof(digest), digest, sizeof(digest));
}

static void test_java(void **state)
{
	static const char *const places[] = {"etc/ssl/certs/java/cacerts",
		"usr/lib/jvm/java-17/lib/security/cacerts",
		"opt/java/openjdk/lib/security/cacerts"};
	unsigned char empty[32];
	struct trust t;
	struct err err;

	make_keystore(empty);
	for (size_t i = 0; i < 3; i++)
		put(places[i], empty, sizeof(empty));
	put("usr/lib/jvm/java-21/lib/security/cacerts", "0\x82PKCS12", 8);
	put_link("usr/lib/jvm/java-11/lib/security/cacerts", "/etc/ssl/certs/java/cacerts");
	assert_int_equal(begin(&t, SOURCE, &err), 0);
	for (size_t i = 0; i < 3; i++) {
		scoped_str struct str store = {0};
		struct stat st;

		read_over(&t, places[i], &store, &st);
		check_keystore(&store);
		assert_int_equal(st.st_uid, OWNER);
	}
	assert_false(is_there(&t, "usr/lib/jvm/java-21/lib/security/cacerts"));
	assert_false(is_there(&t, "usr/lib/jvm/java-11"));
	trust_done(&t);
}

/* As keytool makes it without a password; one certificate. */
static const char p12[] =
	"MIICCAIBAzCCAgEGCSqGSIb3DQEHAaCCAfIEggHuMIIB6jCCAeYGCSqGSIb3DQEHAaCCAdcEggHTMIIBzzCCAcsG"
	"CyqGSIb3DQEMCgEDoIIBiTCCAYUGCiqGSIb3DQEJFgGgggF1BIIBcTCCAW0wggEToAMCAQICFAK3PC5zpUFlZG8X"
	"ETvockIMX6IrMAoGCCqGSM49BAMCMAwxCjAIBgNVBAMMAXgwHhcNMjYxMTI5MTgxNjA3WhcNMjYxMjI5MTgxNjA3"
	"WjAMMQowCAYDVQQDDAF4MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAERs10KHhDcbCmRQ2cG/vXpMIcUKbc2Cgd"
	"8MwU9853rPd3EA5B+tq8flVOvusumi/D5f79RhR6rWKJYUo2pLLHPaNTMFEwHQYDVR0OBBYEFF3hJOLxLoL3Iabk"
	"QP2e5guaeJvdMB8GA1UdIwQYMBaAFF3hJOLxLoL3IabkQP2e5guaeJvdMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZI"
	"zj0EAwIDSAAwRQIgEsSHzOFSCFwAbRgtJmlg49imbdEwKsU6Y8T6eEwXguQCIQCZz1wgnLTdzqQEI0aArv7Z9Lu2"
	"bwEMHhmET4gAOLIB6TEvMBUGCSqGSIb3DQEJFDEIHgYAbwBuAGUwFgYMYIZIAYb5Zq3KewEBMQYGBFUdJQA=";

static void test_newer_java(void **state)
{
	static const char place[] = "usr/lib/jvm/java-21/lib/security/cacerts";
	scoped_str struct str old = {0}, store = {0};
	const unsigned char *der;
	STACK_OF(PKCS7) * safes;
	struct stat st;
	struct trust t;
	struct err err;
	PKCS12 *all;

	assert_int_equal(base64_decode(slice_of(p12), &old), 0);
	put(place, old.p, old.len);
	/* With something behind, as the check of a password is. */
	str_puts(&old, "more");
	put("usr/lib/jvm/java-22/lib/security/cacerts", old.p, old.len);
	assert_int_equal(begin(&t, SOURCE, &err), 0);
	assert_false(is_there(&t, "usr/lib/jvm/java-22/lib/security/cacerts"));
	read_over(&t, place, &store, &st);
	der = (const unsigned char *)store.p;
	all = d2i_PKCS12(NULL, &der, (long)store.len);
	assert_non_null(all);
	assert_ptr_equal(der, store.p + store.len);
	safes = PKCS12_unpack_authsafes(all);
	assert_int_equal(sk_PKCS7_num(safes), 2);
	for (int i = 0; i < 2; i++) {
		STACK_OF(PKCS12_SAFEBAG) *bags = PKCS12_unpack_p7data(sk_PKCS7_value(safes, i));
		const PKCS12_SAFEBAG *bag = sk_PKCS12_SAFEBAG_value(bags, 0);
		char *name = PKCS12_get_friendlyname((PKCS12_SAFEBAG *)bag);

		assert_int_equal(sk_PKCS12_SAFEBAG_num(bags), 1);
		assert_int_equal(PKCS12_SAFEBAG_get_nid(bag), NID_certBag);
		assert_string_equal(name, i ? "cloche-sandbox" : "one");
		OPENSSL_free(name);
		sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
	}
	sk_PKCS7_pop_free(safes, PKCS7_free);
	PKCS12_free(all);
	trust_done(&t);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)
	const struct CMUnitTest tests[] = {TEST(test_debian), TEST(test_shared_layers),
		TEST(test_links), TEST(test_empty), TEST(test_strange), TEST(test_no_certificate),
		TEST(test_java), TEST(test_newer_java)};

	if (geteuid() != 0) {
		printf("skipped: not root\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
