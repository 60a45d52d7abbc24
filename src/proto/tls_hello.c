/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/tls_hello.h"

#include <errno.h>
#include <stdint.h>

#define RECORD_HANDSHAKE 22
#define RECORD_MAX       16384
#define CLIENT_HELLO     1
#define MESSAGE_HEAD     4
#define RANDOM_LEN       32
#define SESSION_ID_MAX   32

enum extension {
	EXTENSION_SERVER_NAME = 0,
	EXTENSION_ALPN = 16,
	EXTENSION_ECH_FIRST = 0xfe08, /* drafts */
	EXTENSION_ECH = 0xfe0d,
	EXTENSION_ESNI = 0xffce, /* what came before it */
};

void tls_hello_done(struct tls_hello *hello)
{
	str_done(&hello->body);
	hello->alpn = (struct slice){0};
}

static int wrong(struct tls_hello *hello, const char *why)
{
	hello->result = TLS_HELLO_MALFORMED;
	hello->why = why;
	return -EBADMSG;
}

/* Cuts an integer of so many bytes off the front. */
static bool cut_int(struct slice *rest, size_t bytes, size_t *ret)
{
	size_t v = 0;

	if (rest->len < bytes)
		return false;
	for (size_t i = 0; i < bytes; i++)
		v = v << 8 | (unsigned char)rest->p[i];
	rest->p += bytes;
	rest->len -= bytes;
	*ret = v;
	return true;
}

static bool cut(struct slice *rest, size_t len, struct slice *ret)
{
	if (rest->len < len)
		return false;
	*ret = (struct slice){.p = rest->p, .len = len};
	rest->p += len;
	rest->len -= len;
	return true;
}

/* Cuts off what stands behind a length of so many bytes. */
static bool cut_vector(struct slice *rest, size_t bytes, struct slice *ret)
{
	size_t len;

	return cut_int(rest, bytes, &len) && cut(rest, len, ret);
}

/* One entry, of the one type there is (RFC 6066 leaves no way to skip others). */
static int read_server_name(struct tls_hello *hello, struct slice data)
{
	struct slice list, name;
	size_t type;

	if (!cut_vector(&data, 2, &list) || data.len > 0 || !cut_int(&list, 1, &type) ||
		type != 0 || !cut_vector(&list, 2, &name))
		return wrong(hello, "its list of server names cannot be read");
	if (list.len > 0)
		return wrong(hello, "it names more than one server");
	if (url_host_read(name, &hello->host) < 0)
		return wrong(hello, "its server name is no host name");
	hello->result = TLS_HELLO_NAME;
	return 0;
}

static int read_alpn(struct tls_hello *hello, struct slice data)
{
	struct slice list, rest, one;

	if (!cut_vector(&data, 2, &list) || data.len > 0 || list.len == 0)
		return wrong(hello, "its list of protocols cannot be read");
	for (rest = list; rest.len > 0;)
		if (!cut_vector(&rest, 1, &one) || one.len == 0)
			return wrong(hello, "its list of protocols cannot be read");
	hello->alpn = list;
	return 0;
}

static int read_extension(struct tls_hello *hello, size_t type, struct slice data)
{
	if (type == EXTENSION_SERVER_NAME)
		return read_server_name(hello, data);
	if (type == EXTENSION_ALPN)
		return read_alpn(hello, data);
	if ((type >= EXTENSION_ECH_FIRST && type <= EXTENSION_ECH) || type == EXTENSION_ESNI)
		hello->ech = true;
	return 0;
}

static int read_extensions(struct tls_hello *hello, struct slice rest)
{
	unsigned char seen[(UINT16_MAX + 1) / 8] = {0};
	struct slice data;
	size_t type;
	int r;

	while (rest.len > 0) {
		if (!cut_int(&rest, 2, &type) || !cut_vector(&rest, 2, &data))
			return wrong(hello, "an extension runs past its end");
		if (seen[type / 8] & 1u << type % 8)
			return wrong(hello, "it has an extension twice");
		seen[type / 8] |= (unsigned char)(1u << type % 8);
		r = read_extension(hello, type, data);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_message(struct tls_hello *hello)
{
	struct slice rest = str_slice(&hello->body), part, extensions;
	size_t version;

	rest.p += MESSAGE_HEAD;
	rest.len -= MESSAGE_HEAD;
	if (!cut_int(&rest, 2, &version) || version >> 8 != 3)
		return wrong(hello, "it speaks no version of TLS");
	if (!cut(&rest, RANDOM_LEN, &part) || !cut_vector(&rest, 1, &part) ||
		part.len > SESSION_ID_MAX)
		return wrong(hello, "its session cannot be read");
	if (!cut_vector(&rest, 2, &part) || part.len < 2 || part.len % 2 > 0)
		return wrong(hello, "its list of ciphers cannot be read");
	if (!cut_vector(&rest, 1, &part) || part.len == 0)
		return wrong(hello, "its list of compressions cannot be read");
	hello->result = TLS_HELLO_NO_NAME;
	if (rest.len == 0)
		return 0; /* as clients of long ago */
	if (!cut_vector(&rest, 2, &extensions) || rest.len > 0)
		return wrong(hello, "its extensions cannot be read");
	return read_extensions(hello, extensions);
}

/* Looks at the head of a record as it comes. */
static void add_to_head(struct tls_hello *hello, unsigned char byte)
{
	bool first = hello->body.len == 0;

	hello->head[hello->n_head++] = byte;
	if ((hello->n_head == 1 && byte != RECORD_HANDSHAKE) || (hello->n_head == 2 && byte != 3)) {
		if (first)
			hello->result = TLS_HELLO_NOT_TLS;
		else
			(void)wrong(hello, "something else comes before its end");
	}
	if (hello->n_head < sizeof(hello->head) || hello->result != TLS_HELLO_MORE)
		return;
	hello->record_left = (size_t)hello->head[3] << 8 | hello->head[4];
	if (hello->record_left == 0 || hello->record_left > RECORD_MAX)
		(void)wrong(hello, "a record is empty or too long");
}

/* Looks at the message as far as it has come; true once it is whole. */
static bool is_whole(struct tls_hello *hello)
{
	struct slice rest = str_slice(&hello->body);
	size_t type, len;

	if (cut_int(&rest, 1, &type) && type != CLIENT_HELLO) {
		(void)wrong(hello, "it begins with another message");
		return false;
	}
	if (!cut_int(&rest, 3, &len))
		return false;
	if (len > TLS_HELLO_MAX)
		(void)wrong(hello, "it is too long");
	else if (rest.len > len || (rest.len == len && hello->record_left > 0))
		(void)wrong(hello, "another message comes in the same record");
	return hello->result == TLS_HELLO_MORE && rest.len == len;
}

enum tls_hello_result tls_hello_feed(struct tls_hello *hello, struct slice in)
{
	while (in.len > 0 && hello->result == TLS_HELLO_MORE) {
		size_t n = hello->record_left < in.len ? hello->record_left : in.len;

		if (hello->n_head < sizeof(hello->head)) {
			add_to_head(hello, (unsigned char)*in.p);
			in.p++;
			in.len--;
			continue;
		}
		str_add(&hello->body, in.p, n);
		in.p += n;
		in.len -= n;
		hello->record_left -= n;
		if (hello->record_left == 0)
			hello->n_head = 0;
		if (is_whole(hello))
			(void)read_message(hello); /* the result says it */
	}
	return hello->result;
}

void tls_hello_give_up(struct tls_hello *hello)
{
	if (hello->result == TLS_HELLO_MORE)
		(void)wrong(hello, "it does not end");
}

bool tls_hello_offers(const struct tls_hello *hello, const char *protocol)
{
	struct slice rest = hello->alpn, one;

	while (cut_vector(&rest, 1, &one))
		if (slice_is(one, protocol))
			return true;
	return false;
}
