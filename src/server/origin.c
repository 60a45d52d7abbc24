/* SPDX-License-Identifier: Apache-2.0 */
#include "server/origin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "spec/spec_network.h"
#include "util/mem.h"

#define NAMES_MAX  64
#define HTTP_PORT  80
#define HTTPS_PORT 443

struct place { /* of a Host, an Origin or a name; the slices are another's */
	struct slice host;
	uint16_t port; /* 0: none was named */
	bool has_scheme, is_https;
};

struct origin {
	char *texts[NAMES_MAX];
	struct place names[NAMES_MAX];
	size_t n;
};

static const struct http_refusal is_wrong_host = {421, "wrong_host",
	"this server does not answer to the name in Host: use one of its addresses, or have it "
	"listed in \"names\" of its --config"};
static const struct http_refusal is_foreign = {403, "foreign_origin",
	"a web page of another origin asks: this server answers its own pages and programs only"};

/* ---- what it is called ---- */

static int read_name(struct slice text, struct place *ret)
{
	struct slice scheme, path = {0};

	*ret = (struct place){0};
	if (http1_split_absolute(text, &scheme, &ret->host, &path) == 0) {
		ret->has_scheme = true;
		ret->is_https = http1_is(scheme, "https");
		text = ret->host;
	}
	return path.len > 0 ? -EINVAL : http1_split_host(text, &ret->host, &ret->port);
}

int origin_new(const json_t *config, struct origin **ret_origin, struct err *err)
{
	scoped(origin) struct origin *origin = new0(struct origin);
	const json_t *names = json_object_get(config, "names");

	if (names && (!json_is_array(names) || json_array_size(names) > NAMES_MAX))
		return err_set(err, -EINVAL, "--config: \"names\" is a list of at most %d names",
			NAMES_MAX);
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *text = json_string_value(json_array_get(names, i));

		if (text)
			origin->texts[origin->n] = mem_dup(text);
		if (!text || read_name(slice_of(origin->texts[origin->n]),
				     &origin->names[origin->n]) < 0)
			return err_set(err, -EINVAL,
				"--config: \"names\": '%s' is no NAME, NAME:PORT or "
				"https://NAME[:PORT]",
				text ? text : "(no text)");
		origin->n++;
	}
	*ret_origin = take(&origin);
	return 0;
}

void origin_free(struct origin *origin)
{
	if (!origin)
		return;
	for (size_t i = 0; i < NAMES_MAX; i++)
		free(origin->texts[i]);
	free(origin);
}

/* ---- hosts ---- */

static bool is_same_host(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || strncasecmp(a.p, b.p, a.len) == 0);
}

/* IPv4 as ::ffff:a.b.c.d. */
static bool read_address(struct slice host, unsigned char ret[16])
{
	char text[INET6_ADDRSTRLEN];

	if (host.len >= sizeof(text))
		return false;
	memcpy(text, host.p, host.len);
	text[host.len] = '\0';
	memset(ret, 0, 10);
	ret[10] = ret[11] = 0xff;
	return inet_pton(AF_INET, text, ret + 12) == 1 || inet_pton(AF_INET6, text, ret) == 1;
}

static bool is_loopback(const unsigned char address[16])
{
	static const unsigned char v4[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127};
	static const unsigned char v6[16] = {[15] = 1};

	return memcmp(address, v4, sizeof(v4)) == 0 || memcmp(address, v6, sizeof(v6)) == 0;
}

static bool is_listed(const struct origin *origin, struct slice host)
{
	for (size_t i = 0; i < origin->n; i++)
		if (is_same_host(origin->names[i].host, host))
			return true;
	return false;
}

/* An address cannot be anybody else's name: one that the connection came to is this server's own. */
static bool is_ours(const struct origin *origin, struct slice host, const struct http_peer *peer)
{
	unsigned char address[16];

	if (peer->sandbox[0])
		return http1_is(host, SPEC_PLANE_HOST);
	if (http1_is(host, "localhost") || is_listed(origin, host))
		return true;
	return read_address(host, address) &&
	       (is_loopback(address) || memcmp(address, peer->to, sizeof(address)) == 0);
}

/* Of names that others use as well, such as localhost, a browser must not remember that they have TLS. */
static bool is_strict(struct slice host, const struct http_peer *peer)
{
	unsigned char address[16];

	return peer->is_tls && !http1_is(host, "localhost") && !read_address(host, address);
}

/* ---- pages ---- */

static uint16_t port_of(const struct place *place, bool is_https)
{
	return place->port ? place->port : is_https ? HTTPS_PORT : HTTP_PORT;
}

static bool is_named(const struct origin *origin, const struct place *page)
{
	for (size_t i = 0; i < origin->n; i++) {
		const struct place *name = &origin->names[i];

		if (name->has_scheme && name->is_https == page->is_https &&
			is_same_host(name->host, page->host) &&
			port_of(name, page->is_https) == port_of(page, page->is_https))
			return true;
	}
	return false;
}

/* The page's own server is the one that is asked. What has TLS before us, has it by a proxy, and so by a listed name. */
static bool is_same(const struct origin *origin, const struct place *page, const struct place *host,
	const struct http_peer *peer)
{
	bool may_https = peer->is_tls || is_listed(origin, host->host);

	return host->host.p && is_same_host(page->host, host->host) &&
	       port_of(page, page->is_https) == port_of(host, page->is_https) &&
	       (page->is_https ? may_https : !peer->is_tls);
}

/* host->host.p NULL: none that was checked. */
static bool is_from_page(const struct origin *origin, const struct http1_head *head,
	const struct place *host, const struct http_peer *peer)
{
	for (size_t i = 0; i < head->n_fields; i++) {
		const struct http1_field *field = &head->fields[i];
		struct place page;

		/* Pages of other ports of this host are "same-site", and no less foreign. */
		if (http1_is(field->name, "Sec-Fetch-Site") &&
			!slice_is(field->value, "same-origin") && !slice_is(field->value, "none"))
			return true;
		if (!http1_is(field->name, "Origin"))
			continue;
		if (read_name(field->value, &page) < 0 || !page.has_scheme ||
			!(is_named(origin, &page) || is_same(origin, &page, host, peer)))
			return true;
	}
	return false;
}

void origin_check(const struct origin *origin, const struct http1_head *head,
	const struct http_peer *peer, struct http_plan *plan)
{
	struct place host = {0};

	/* Without a Host (HTTP/1.0) it comes from no browser; over the Unix socket it may have any. */
	if (head->host.p && !peer->is_local) {
		if (read_name(head->host, &host) < 0 || host.has_scheme ||
			!is_ours(origin, host.host, peer)) {
			plan->refusal = is_wrong_host;
			return;
		}
		plan->is_strict = is_strict(host.host, peer);
	}
	if (is_from_page(origin, head, &host, peer))
		plan->refusal = is_foreign;
}
