/* SPDX-License-Identifier: Apache-2.0 */
/* A client's first bytes. However they are cut (the first byte says how), the same is read from them; and a server
 * that OpenSSL is takes no other name from them than we do. */
#include <assert.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdlib.h>

#include "proto/tls_hello.h"

/* What OpenSSL made of it. */
struct peer {
	bool was_asked; /* it read the whole hello */
	bool has_name;
	struct url_host host;
	struct str name;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_name(SSL *ssl, int *alert, void *arg)
{
	struct peer *peer = SSL_get_app_data(ssl);
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	peer->was_asked = true;
	peer->has_name = name != NULL;
	str_reset(&peer->name);
	str_puts(&peer->name, name ? name : "");
	return SSL_TLSEXT_ERR_ALERT_FATAL; /* enough was seen */
}

static SSL_CTX *context(void)
{
	static SSL_CTX *made;

	if (made)
		return made;
	made = SSL_CTX_new(TLS_server_method());
	assert(made);
	SSL_CTX_set_min_proto_version(made, 0);
	SSL_CTX_set_security_level(made, 0);
	SSL_CTX_set_tlsext_servername_callback(made, on_name);
	return made;
}

static void feed_peer(struct peer *peer, struct slice in)
{
	SSL *ssl = SSL_new(context());
	BIO *from = BIO_new_mem_buf(in.p, (int)in.len), *to = BIO_new(BIO_s_mem());

	assert(ssl && from && to);
	BIO_set_mem_eof_return(from, -1);
	SSL_set_app_data(ssl, peer);
	SSL_set_bio(ssl, from, to);
	(void)SSL_accept(ssl); /* fails, if not before, then in on_name() */
	SSL_free(ssl);
}

static void check_peer(const struct tls_hello *hello, struct slice in)
{
	struct peer peer = {0};

	if (in.len > 0 && (unsigned char)*in.p == 0x16) /* else it may be SSL 2's hello */
		feed_peer(&peer, in);
	if (peer.was_asked && peer.has_name && hello->result != TLS_HELLO_MALFORMED) {
		assert(hello->result == TLS_HELLO_NAME);
		assert(url_host_read(str_slice(&peer.name), &peer.host) == 0);
		assert(strcmp(peer.host.text, hello->host.text) == 0);
	}
	if (peer.was_asked && !peer.has_name)
		assert(hello->result == TLS_HELLO_NO_NAME || hello->result == TLS_HELLO_MALFORMED);
	str_done(&peer.name);
}

static void feed(struct tls_hello *hello, struct slice in, size_t step)
{
	while (in.len > 0) {
		size_t n = in.len < step ? in.len : step;
		char *exact = malloc(n);

		memcpy(exact, in.p, n);
		(void)tls_hello_feed(hello, (struct slice){exact, n});
		free(exact);
		in.p += n;
		in.len -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = {(const char *)data + 1, size - 1};
	struct tls_hello whole = {0}, cut = {0};

	if (size == 0)
		return 0;
	feed(&whole, in, in.len);
	feed(&cut, in, 1 + *data % 64);
	assert(whole.result == cut.result && whole.why == cut.why && whole.ech == cut.ech);
	assert(slice_eq(whole.alpn, cut.alpn));
	assert(tls_hello_offers(&whole, "h2") == tls_hello_offers(&cut, "h2"));
	if (whole.result == TLS_HELLO_NAME)
		assert(strcmp(whole.host.text, cut.host.text) == 0);
	assert((whole.result == TLS_HELLO_MALFORMED) == (whole.why != NULL));
	check_peer(&whole, in);
	tls_hello_done(&whole);
	tls_hello_done(&cut);
	return 0;
}
