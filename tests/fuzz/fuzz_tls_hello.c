/* SPDX-License-Identifier: Apache-2.0 */
/* A client's first bytes: however they are cut, the same is read from them. The first byte says how. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "proto/tls_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	tls_hello_done(&whole);
	tls_hello_done(&cut);
	return 0;
}
