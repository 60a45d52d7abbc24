/* SPDX-License-Identifier: Apache-2.0 */
/* The two PEM forms (RFC 8410) have fixed bytes around the key, so they are put together and taken apart
 * here: OpenSSL's decoders cost more to wake up than a whole signature. */
#include "launcher/hostkey.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/base64.h"
#include "util/digest.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/path.h"

#define KEY_NAME "host.key"
#define PUB_NAME "host.pub"
#define PEM_MAX  4096
#define KEY_LEN  32 /* secret seed and public key alike */
#define SIG_LEN  64
#define FP_BYTES 16

struct pem_form {
	const char *label;
	unsigned char head[16];
	size_t head_len;
};

static const struct pem_form secret_form = {"PRIVATE KEY",
	{0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
		0x20},
	16};
static const struct pem_form public_form = {
	"PUBLIC KEY", {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00}, 12};

struct hostkey {
	unsigned char seed[KEY_LEN], public[KEY_LEN];
	char public_b64[48], fingerprint[FP_BYTES * 3];
	bool has_public; /* read or derived */
	EVP_PKEY *pkey;  /* once warm */
	EVP_MD_CTX *ctx;
};

/* Without its config file OpenSSL starts in a third of the time, and nothing here depends on it. */
static void wake_openssl(void)
{
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
}

static void write_pem(
	const struct pem_form *form, const unsigned char key[KEY_LEN], struct str *out)
{
	unsigned char der[16 + KEY_LEN];

	memcpy(der, form->head, form->head_len);
	memcpy(der + form->head_len, key, KEY_LEN);
	str_printf(out, "-----BEGIN %s-----\n", form->label);
	jsonw_base64(out, der, form->head_len + KEY_LEN);
	str_printf(out, "\n-----END %s-----\n", form->label);
	OPENSSL_cleanse(der, sizeof(der));
}

static int read_pem(const struct pem_form *form, struct slice text, unsigned char ret_key[KEY_LEN])
{
	scoped_mem char *begin = mem_printf("-----BEGIN %s-----\n", form->label);
	scoped_mem char *end = mem_printf("\n-----END %s-----", form->label);
	const char *from = memmem(text.p, text.len, begin, strlen(begin)), *to;
	scoped_str struct str der = {0};
	int r = -EBADMSG;

	if (!from)
		return r;
	from += strlen(begin);
	to = memmem(from, text.len - (size_t)(from - text.p), end, strlen(end));
	if (!to || base64_decode((struct slice){.p = from, .len = (size_t)(to - from)}, &der) < 0)
		return r;
	if (der.len == form->head_len + KEY_LEN && memcmp(der.p, form->head, form->head_len) == 0) {
		memcpy(ret_key, der.p + form->head_len, KEY_LEN);
		r = 0;
	}
	OPENSSL_cleanse(der.p, der.len);
	return r;
}

static int read_key_file(
	int dirfd, const char *name, const struct pem_form *form, unsigned char ret_key[KEY_LEN])
{
	scoped_str struct str text = {0};
	int r = fdio_read_file(dirfd, name, PEM_MAX, &text);

	if (r == 0)
		r = read_pem(form, str_slice(&text), ret_key);
	if (text.p)
		OPENSSL_cleanse(text.p, text.len);
	return r;
}

/* Links it in place, so that of two who make one at the same time both read the first. */
static int write_new_key(int dirfd, const unsigned char seed[KEY_LEN])
{
	scoped_mem char *tmp = mem_printf(KEY_NAME ".new%d", (int)getpid());
	scoped_str struct str text = {0};
	scoped_fd int fd = -1;
	int r;

	(void)unlinkat(dirfd, tmp, 0); /* of a process with our number that died */
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	write_pem(&secret_form, seed, &text);
	r = fdio_write_all(fd, text.p, text.len);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && linkat(dirfd, tmp, dirfd, KEY_NAME, 0) < 0 && errno != EEXIST)
		r = -errno;
	(void)unlinkat(dirfd, tmp, 0); /* it has its name now, or failed */
	OPENSSL_cleanse(text.p, text.len);
	return r;
}

static int read_or_make_seed(int dirfd, unsigned char ret_seed[KEY_LEN])
{
	int r = read_key_file(dirfd, KEY_NAME, &secret_form, ret_seed);

	if (r != -ENOENT)
		return r;
	wake_openssl();
	if (RAND_priv_bytes(ret_seed, KEY_LEN) != 1)
		return -EIO;
	r = write_new_key(dirfd, ret_seed);
	return r < 0 ? r : read_key_file(dirfd, KEY_NAME, &secret_form, ret_seed);
}

/* Of the secret one; what host.pub said must be the same, or nobody could check what is signed. */
static int check_public(struct hostkey *key)
{
	unsigned char public[KEY_LEN];
	size_t len = KEY_LEN;

	if (EVP_PKEY_get_raw_public_key(key->pkey, public, &len) != 1)
		return -EIO;
	if (key->has_public && memcmp(key->public, public, KEY_LEN) != 0)
		return -EKEYREJECTED;
	memcpy(key->public, public, KEY_LEN);
	key->has_public = true;
	return 0;
}

static int read_or_make_public(struct hostkey *key, int dirfd)
{
	scoped_str struct str text = {0};
	int r = read_key_file(dirfd, PUB_NAME, &public_form, key->public);

	key->has_public = r == 0;
	if (r == 0)
		return 0;
	r = hostkey_warm(key);
	if (r < 0)
		return r;
	write_pem(&public_form, key->public, &text);
	r = fdio_replace(dirfd, PUB_NAME, text.p, text.len, 0644);
	if (r == 0 && fchmodat(dirfd, PUB_NAME, 0644, 0) < 0) /* whatever the umask */
		r = -errno;
	return r;
}

static void format_key(
	const unsigned char public[KEY_LEN], char ret_b64[48], char ret_fingerprint[FP_BYTES * 3])
{
	scoped_str struct str b64 = {0};
	char hex[DIGEST_HEX_SIZE];

	jsonw_base64(&b64, public, KEY_LEN);
	memcpy(ret_b64, b64.p, b64.len + 1);
	digest_of(public, KEY_LEN, hex);
	for (size_t i = 0; i < FP_BYTES; i++) {
		memcpy(ret_fingerprint + 3 * i, hex + 2 * i, 2);
		ret_fingerprint[3 * i + 2] = i + 1 < FP_BYTES ? ':' : '\0';
	}
}

int hostkey_open(const char *state_dir, struct hostkey **ret_key, struct err *err)
{
	scoped(hostkey) struct hostkey *key = new0(struct hostkey);
	scoped_fd int dirfd = -1;
	int r = path_make_all(state_dir, 0755);

	if (r < 0)
		return err_set(err, r, "make '%s': %m", state_dir);
	dirfd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return err_set(err, -errno, "open '%s': %m", state_dir);
	r = read_or_make_seed(dirfd, key->seed);
	if (r == -EBADMSG)
		return err_set(err, r, "'%s/" KEY_NAME "' is no Ed25519 key in PEM", state_dir);
	if (r == 0)
		r = read_or_make_public(key, dirfd);
	if (r < 0)
		return err_set(err, r, "the host key in '%s': %m", state_dir);
	format_key(key->public, key->public_b64, key->fingerprint);
	*ret_key = take(&key);
	return 0;
}

void hostkey_free(struct hostkey *key)
{
	if (!key)
		return;
	EVP_MD_CTX_free(key->ctx);
	EVP_PKEY_free(key->pkey);
	OPENSSL_cleanse(key->seed, KEY_LEN);
	free(key);
}

int hostkey_warm(struct hostkey *key)
{
	unsigned char signature[SIG_LEN];
	size_t len = SIG_LEN;

	if (key->pkey)
		return check_public(key);
	wake_openssl();
	key->ctx = EVP_MD_CTX_new();
	key->pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key->seed, KEY_LEN);
	if (!key->ctx || !key->pkey)
		return -EIO;
	/* The first signature fetches what later ones use. */
	if (EVP_DigestSignInit(key->ctx, NULL, NULL, NULL, key->pkey) != 1 ||
		EVP_DigestSign(key->ctx, signature, &len, (const unsigned char *)"", 0) != 1)
		return -EIO;
	return check_public(key);
}

const char *hostkey_public_b64(const struct hostkey *key)
{
	return key->public_b64;
}

const char *hostkey_fingerprint(const struct hostkey *key)
{
	return key->fingerprint;
}

int hostkey_sign(struct hostkey *key, const void *text, size_t len, struct str *ret_b64)
{
	unsigned char signature[SIG_LEN];
	size_t n = SIG_LEN;
	int r = hostkey_warm(key);

	if (r < 0)
		return r;
	EVP_MD_CTX_reset(key->ctx);
	if (EVP_DigestSignInit(key->ctx, NULL, NULL, NULL, key->pkey) != 1 ||
		EVP_DigestSign(key->ctx, signature, &n, text, len) != 1 || n != SIG_LEN)
		return -EIO;
	jsonw_base64(ret_b64, signature, n);
	return 0;
}

int hostkey_check(const char *key_b64, const char *text, size_t len, const char *signature_b64)
{
	scoped_str struct str public = {0}, signature = {0};
	EVP_MD_CTX *ctx;
	EVP_PKEY *pkey;
	int r = -EBADMSG;

	if (base64_decode(slice_of(key_b64), &public) < 0 || public.len != KEY_LEN ||
		base64_decode(slice_of(signature_b64), &signature) < 0 || signature.len != SIG_LEN)
		return r;
	wake_openssl();
	ctx = EVP_MD_CTX_new();
	pkey = EVP_PKEY_new_raw_public_key(
		EVP_PKEY_ED25519, NULL, (unsigned char *)public.p, KEY_LEN);
	if (ctx && pkey && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
		EVP_DigestVerify(ctx, (unsigned char *)signature.p, SIG_LEN,
			(const unsigned char *)text, len) == 1)
		r = 0;
	EVP_PKEY_free(pkey);
	EVP_MD_CTX_free(ctx);
	return r;
}

static void add_b64(const unsigned char public[KEY_LEN], struct str *out)
{
	jsonw_base64(out, public, KEY_LEN);
}

int hostkey_read_public(const char *state_dir, struct str *ret_b64, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/" PUB_NAME, state_dir);

	return hostkey_read_public_file(path, ret_b64, err);
}

int hostkey_read_public_file(const char *path, struct str *ret_b64, struct err *err)
{
	scoped_str struct str text = {0}, raw = {0};
	unsigned char public[KEY_LEN];
	int r = fdio_read_file(AT_FDCWD, path, PEM_MAX, &text);
	struct slice bare;

	if (r < 0)
		return err_set(err, r, "read the key '%s': %m", path);
	if (read_pem(&public_form, str_slice(&text), public) == 0) {
		add_b64(public, ret_b64);
		return 0;
	}
	bare = (struct slice){.p = text.p, .len = strcspn(text.p ? text.p : "", " \t\r\n")};
	if (base64_decode(bare, &raw) < 0 || raw.len != KEY_LEN)
		return err_set(
			err, -EBADMSG, "'%s' holds no Ed25519 public key (PEM or base64)", path);
	add_b64((unsigned char *)raw.p, ret_b64);
	return 0;
}
