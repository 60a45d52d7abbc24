/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed: a nonce of 12 random bytes, the text, a tag of 16. A nonce may come twice after some 2^32 texts. */
#include "server/secret_box.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/base64.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define KEY_LEN   32
#define NONCE_LEN 12
#define TAG_LEN   16
#define TEXT_MAX  (1u << 20)

struct secret_box {
	unsigned char key[KEY_LEN];
};

void secret_box_free(struct secret_box *box)
{
	if (box)
		explicit_bzero(box, sizeof(*box));
	free(box);
}

static int read_key(const char *path, unsigned char key[KEY_LEN], struct err *err)
{
	scoped_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	unsigned char more;
	int r = fd < 0 ? -errno : (int)fdio_read_full(fd, key, KEY_LEN);

	if (r < 0)
		return err_set(err, r, "read '%s': %m", path);
	if (r != KEY_LEN || fdio_read_full(fd, &more, 1) != 0)
		return err_set(err, -EUCLEAN,
			"'%s' is no key: put back the one that secrets were stored with, or remove "
			"it and store them again",
			path);
	return 0;
}

/* A replica may do the same just now: linked, whole, and the first one counts. */
static int make_key(const char *path, struct err *err)
{
	scoped_mem char *own = mem_printf("%s.%d", path, (int)getpid());
	unsigned char key[KEY_LEN];
	scoped_fd int fd = -1;
	int r = 0;

	(void)unlink(own); /* of one that was killed, with our number */
	fd = open(own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || RAND_bytes(key, sizeof(key)) != 1)
		r = fd < 0 ? -errno : -EIO;
	if (r == 0)
		r = fdio_write_all(fd, key, sizeof(key));
	if (r == 0 && (fsync(fd) < 0 || (link(own, path) < 0 && errno != EEXIST)))
		r = -errno;
	explicit_bzero(key, sizeof(key));
	(void)unlink(own); /* its other name stays */
	return r < 0 ? err_set(err, r, "make '%s': %m", path) : 0;
}

int secret_box_open(const char *state_dir, struct secret_box **ret_box, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/server/secrets.key", state_dir);
	scoped(secret_box) struct secret_box *box = new0(struct secret_box);
	int r = access(path, F_OK) < 0 && errno == ENOENT ? make_key(path, err) : 0;

	if (r == 0)
		r = read_key(path, box->key, err);
	if (r == 0)
		*ret_box = take(&box);
	return r;
}

static bool seal(const struct secret_box *box, EVP_CIPHER_CTX *ctx, struct slice label,
	struct slice text, unsigned char *out)
{
	unsigned char *nonce = out, *body = out + NONCE_LEN, *tag = body + text.len;
	int n;

	return RAND_bytes(nonce, NONCE_LEN) == 1 &&
	       EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, box->key, nonce) == 1 &&
	       EVP_EncryptUpdate(ctx, NULL, &n, (const unsigned char *)label.p, (int)label.len) ==
	               1 &&
	       EVP_EncryptUpdate(ctx, body, &n, (const unsigned char *)text.p, (int)text.len) ==
	               1 &&
	       EVP_EncryptFinal_ex(ctx, tag, &n) == 1 &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG_LEN, tag) == 1;
}

int secret_box_seal(const struct secret_box *box, struct slice label, struct slice text,
	struct str *out, struct err *err)
{
	EVP_CIPHER_CTX *ctx;
	scoped_mem unsigned char *bytes = NULL;
	size_t len = NONCE_LEN + text.len + TAG_LEN;
	bool is_done;

	if (text.len > TEXT_MAX || label.len > TEXT_MAX)
		return err_set(err, -E2BIG, "a secret is too long");
	ctx = EVP_CIPHER_CTX_new();
	bytes = mem_zero(1, len);
	is_done = ctx && seal(box, ctx, label, text, bytes);
	EVP_CIPHER_CTX_free(ctx);
	if (!is_done)
		return err_set(err, -EIO, "a secret cannot be sealed");
	jsonw_base64(out, bytes, len);
	return 0;
}

/* text has room for as many bytes as sealed has. */
static bool unseal(const struct secret_box *box, EVP_CIPHER_CTX *ctx, struct slice label,
	struct slice sealed, unsigned char *text)
{
	const unsigned char *nonce = (const unsigned char *)sealed.p, *body = nonce + NONCE_LEN;
	size_t len = sealed.len - NONCE_LEN - TAG_LEN;
	int n;

	return EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, box->key, nonce) == 1 &&
	       EVP_DecryptUpdate(ctx, NULL, &n, (const unsigned char *)label.p, (int)label.len) ==
	               1 &&
	       EVP_DecryptUpdate(ctx, text, &n, body, (int)len) == 1 &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG_LEN, (void *)(body + len)) == 1 &&
	       EVP_DecryptFinal_ex(ctx, text + len, &n) == 1;
}

int secret_box_unseal(const struct secret_box *box, struct slice label, struct slice sealed,
	struct str *out, struct err *err)
{
	scoped_str struct str bytes = {0};
	EVP_CIPHER_CTX *ctx = NULL;
	bool is_done = false;
	size_t len;

	if (base64_decode(sealed, &bytes) == 0 && bytes.len >= NONCE_LEN + TAG_LEN &&
		bytes.len <= TEXT_MAX + NONCE_LEN + TAG_LEN && label.len <= TEXT_MAX) {
		len = bytes.len - NONCE_LEN - TAG_LEN;
		ctx = EVP_CIPHER_CTX_new();
		str_reserve(out, len);
		is_done = ctx && unseal(box, ctx, label, str_slice(&bytes),
					 (unsigned char *)out->p + out->len);
	}
	EVP_CIPHER_CTX_free(ctx);
	if (!is_done &&
		out->p) /* what was not authentic is nobody's to read, nor are bytes that nobody wrote */
		explicit_bzero(out->p + out->len, out->cap - out->len);
	if (!is_done)
		return err_set(err, -EUCLEAN,
			"it was stored with another key (secrets.key): store it again");
	out->len += len;
	out->p[out->len] = '\0';
	return 0;
}
