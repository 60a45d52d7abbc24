/* SPDX-License-Identifier: Apache-2.0 */
/* A number, the version, how many entries, the entries; then SHA-1 over the password, some words and all of that.
 * All numbers are big-endian. An entry: what kind, its alias, when it was made, the certificate's type and bytes. */
#define OPENSSL_API_COMPAT 0x10100000L /* the direct SHA-1: see util/digest.h */
#include "sandbox/trust_java.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/sha.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/over.h"
#include "util/fdio.h"
#include "util/str.h"

#define MAGIC       0xfeedfeedU
#define VERSION     2
#define HEAD_LEN    12
#define TRUSTED     2 /* an entry that is a certificate alone */
#define ALIAS       "cloche-sandbox"
#define MAX_ENTRIES 100000

/* As UTF-16; it is the one of every such store. */
static const char password[] = "\0c\0h\0a\0n\0g\0e\0i\0t";
static const char words[] = "Mighty Aphrodite";

struct copy {
	int to_fd;
	SHA_CTX sha;
};

static uint32_t number_at(const char *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof(n));
	return ntohl(n);
}

static void put_number(struct str *out, uint32_t n)
{
	n = htonl(n);
	str_add(out, &n, sizeof(n));
}

static void put_text(struct str *out, const char *text)
{
	uint16_t len = htons((uint16_t)strlen(text));

	str_add(out, &len, sizeof(len));
	str_puts(out, text);
}

static void put_entry(struct str *out, struct slice der)
{
	uint64_t now_ms = (uint64_t)time(NULL) * 1000;

	put_number(out, TRUSTED);
	put_text(out, ALIAS);
	put_number(out, (uint32_t)(now_ms >> 32));
	put_number(out, (uint32_t)now_ms);
	put_text(out, "X.509");
	put_number(out, (uint32_t)der.len);
	str_add(out, der.p, der.len);
}

static void see(void *data, const char *p, size_t len)
{
	SHA1_Update(data, p, len);
}

static int add(struct copy *copy, const void *p, size_t len)
{
	see(&copy->sha, p, len);
	return fdio_write_all(copy->to_fd, p, len);
}

int trust_java_copy(int from_fd, uint64_t size, struct slice der, int to_fd)
{
	struct copy copy = {.to_fd = to_fd};
	unsigned char digest[SHA_DIGEST_LENGTH];
	scoped_str struct str own = {0};
	char head[HEAD_LEN];
	int r;

	if (size < HEAD_LEN + sizeof(digest) ||
		pread(from_fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
		number_at(head) != MAGIC || number_at(head + 4) != VERSION ||
		number_at(head + 8) >= MAX_ENTRIES)
		return -EINVAL;
	SHA1_Init(&copy.sha);
	SHA1_Update(&copy.sha, password, sizeof(password) - 1);
	SHA1_Update(&copy.sha, words, sizeof(words) - 1);
	put_number(&own, MAGIC);
	put_number(&own, VERSION);
	put_number(&own, number_at(head + 8) + 1);
	r = add(&copy, own.p, own.len);
	if (r == 0)
		r = over_copy(from_fd, HEAD_LEN, size - sizeof(digest), to_fd, see, &copy.sha);
	str_reset(&own);
	put_entry(&own, der);
	if (r == 0)
		r = add(&copy, own.p, own.len);
	SHA1_Final(digest, &copy.sha);
	return r < 0 ? r : fdio_write_all(to_fd, digest, sizeof(digest));
}
