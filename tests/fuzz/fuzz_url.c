/* SPDX-License-Identifier: Apache-2.0 */
/* A host, an authority and a URL from the same bytes: what is written from what was read is read as the same. */
#include <arpa/inet.h>
#include <assert.h>
#include <stdint.h>

#include "proto/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_host(const struct url_host *host)
{
	struct str out = {0};
	struct url_host again;
	struct in_addr by_libc;

	url_add_authority(&out, "http", host->text, 0);
	assert(url_host_read(str_slice(&out), &again) == 0 && again.kind == host->kind);
	assert(strcmp(again.text, host->text) == 0);
	assert(memcmp(again.address, host->address, sizeof(again.address)) == 0);
	/* What the C library takes for an address, as connect() by name would, is one. */
	if (inet_aton(host->text, &by_libc))
		assert(host->kind == URL_IPV4 && memcmp(&by_libc, host->address + 12, 4) == 0);
	str_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = {(const char *)data, size};
	struct url_authority authority;
	struct url_host host;
	struct url url, again;
	struct str out = {0};

	if (url_host_read(in, &host) == 0)
		check_host(&host);
	if (url_authority_read(in, &authority) == 0)
		check_host(&authority.host);
	if (url_read(in, &url) == 0) {
		check_host(&url.authority.host);
		url_add(&out, url.scheme, url.authority.host.text, url.authority.port, url.path);
		assert(url_read(str_slice(&out), &again) == 0);
		assert(strcmp(url.scheme, again.scheme) == 0 && slice_eq(url.path, again.path));
		assert(strcmp(url.authority.host.text, again.authority.host.text) == 0);
		assert(again.authority.port == url.authority.port ||
			url.authority.port == url_default_port(slice_of(url.scheme)));
	}
	str_done(&out);
	return 0;
}
