/* SPDX-License-Identifier: Apache-2.0 */
#include "server/preview_head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/auth.h"
#include "server/preview_pass.h"

/* Of one connection (RFC 9110, 7.6.1), or written by us. */
static const char *const hops[] = {
	"connection",
	"content-length",
	"keep-alive",
	"http2-settings",
	"proxy-authenticate",
	"proxy-authorization",
	"proxy-authentication-info",
	"proxy-connection",
	"te",
	"trailer",
	"transfer-encoding",
	"upgrade",
	NULL,
};
/* What a client could say of itself, and what is ours to say. */
static const char *const claims[] = {
	"forwarded",
	"host",
	"x-client-ip",
	"x-cloche-origin",
	"x-real-ip",
	NULL,
};
/* What would reach beyond the preview's own pages: to our cookie, to other hosts for this origin, to reports of what is opened. */
static const char *const reaching[] = {
	"alt-svc",
	"clear-site-data",
	"nel",
	"report-to",
	NULL,
};

static bool is_in(struct slice name, const char *const *names)
{
	for (size_t i = 0; names[i]; i++)
		if (http1_is(name, names[i]))
			return true;
	return false;
}

static bool has_prefix(struct slice text, const char *prefix)
{
	return text.len >= strlen(prefix) && strncasecmp(text.p, prefix, strlen(prefix)) == 0;
}

/* Connection names it, so it is for us. */
static bool is_named(const struct http1_head *head, struct slice name)
{
	for (size_t i = 0; i < head->n_fields; i++) {
		struct slice rest = head->fields[i].value, element;

		if (!http1_is(head->fields[i].name, "connection"))
			continue;
		while (http1_next_element(&rest, &element))
			if (element.len == name.len &&
				strncasecmp(element.p, name.p, name.len) == 0)
				return true;
	}
	return false;
}

static bool is_hop(const struct http1_head *head, struct slice name)
{
	return is_in(name, hops) || is_named(head, name);
}

static void add_framing(struct str *out, enum http1_framing framing, uint64_t length)
{
	char text[24];

	if (framing == HTTP1_CHUNKED) {
		http1_add_field(out, slice_of("Transfer-Encoding"), slice_of("chunked"));
	} else if (framing == HTTP1_LENGTH) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)length);
		http1_add_field(out, slice_of("Content-Length"), slice_of(text));
	}
}

static void add_upgrade(struct str *out)
{
	http1_add_field(out, slice_of("Connection"), slice_of("Upgrade"));
	http1_add_field(out, slice_of("Upgrade"), slice_of("websocket"));
}

/* ---- on the way in ---- */

bool preview_head_is_upgrade(const struct http1_head *request)
{
	return http1_is(request->upgrade, "websocket") && slice_is(request->method, "GET") &&
	       request->minor > 0 && request->framing == HTTP1_NO_BODY;
}

/* All but ours. */
static void add_cookies(struct str *out, const struct http1_field *field)
{
	scoped_str struct str kept = {0};
	struct slice rest = field->value, name, pair;

	while (preview_pass_next_cookie(&rest, &name, &pair)) {
		if (preview_pass_is_ours(name))
			continue;
		str_puts(&kept, kept.len > 0 ? "; " : "");
		str_add(&kept, pair.p, pair.len);
	}
	if (kept.len > 0)
		http1_add_field(out, field->name, str_slice(&kept));
}

/* What of a URL is behind this preview's own origin; p is NULL where it is another's. */
static struct slice behind_own(struct slice url, const struct preview_way *way)
{
	struct slice scheme, authority, path;

	if (http1_split_absolute(url, &scheme, &authority, &path) < 0 ||
		authority.len != way->host.len ||
		strncasecmp(authority.p, way->host.p, way->host.len) != 0)
		return (struct slice){0};
	return path;
}

/* Origin, Referer. */
static void add_url(struct str *out, const struct http1_field *field, const struct preview_way *way)
{
	struct slice path = behind_own(field->value, way);
	scoped_str struct str url = {0};

	if (!path.p) {
		http1_add_field(out, field->name, field->value);
		return;
	}
	str_printf(&url, "http://localhost:%u", way->port);
	str_add(&url, path.p, path.len);
	http1_add_field(out, field->name, str_slice(&url));
}

/* A program may send its key to the wrong place. */
static bool has_key(struct slice value)
{
	return memmem(value.p ? value.p : "", value.len, AUTH_KEY_PREFIX,
		       strlen(AUTH_KEY_PREFIX)) != NULL;
}

static void add_request_field(struct str *out, const struct http1_head *request,
	const struct http1_field *field, const struct preview_way *way)
{
	struct slice name = field->name;

	if (is_hop(request, name) || is_in(name, claims) || has_prefix(name, "x-forwarded-"))
		return;
	if (http1_is(name, "cookie"))
		add_cookies(out, field);
	else if (http1_is(name, "origin") || http1_is(name, "referer"))
		add_url(out, field, way);
	else if (!http1_is(name, "authorization") || !has_key(field->value))
		http1_add_field(out, name, field->value);
}

void preview_head_add_request(
	const struct http1_head *request, const struct preview_way *way, struct str *out)
{
	scoped_str struct str host = {0}, origin = {0};

	str_printf(&host, "localhost:%u", way->port);
	str_puts(&origin, way->is_tls ? "https://" : "http://");
	str_add(&origin, way->host.p, way->host.len);
	http1_add_request(out, request->method, request->target, 1);
	http1_add_field(out, slice_of("Host"), str_slice(&host));
	for (size_t i = 0; i < request->n_fields; i++)
		add_request_field(out, request, &request->fields[i], way);
	http1_add_field(out, slice_of("X-Forwarded-For"), way->client);
	http1_add_field(out, slice_of("X-Cloche-Origin"), str_slice(&origin));
	add_framing(out, request->framing, request->length);
	if (preview_head_is_upgrade(request))
		add_upgrade(out);
	http1_add_end(out);
}

/* ---- on the way out ---- */

/* The server's own place, as it knows it. */
static bool is_local(struct slice scheme, struct slice authority, uint16_t own_port)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "0.0.0.0", "::1", "::", NULL};
	struct slice host;
	uint16_t port;

	if (http1_split_host(authority, &host, &port) < 0 || !is_in(host, names))
		return false;
	return (port ? port : http1_is(scheme, "https") ? 443 : 80) == own_port;
}

/* A place at the server inside is one at this preview: as a path, whatever scheme the browser has. */
static void add_location(
	struct str *out, const struct http1_field *field, const struct preview_way *way)
{
	struct slice scheme, authority, path;
	scoped_str struct str place = {0};

	if (http1_split_absolute(field->value, &scheme, &authority, &path) < 0 ||
		!is_local(scheme, authority, way->port)) {
		http1_add_field(out, field->name, field->value);
		return;
	}
	if (path.len == 0 || *path.p != '/')
		str_putc(&place, '/');
	else if (path.len > 1 && path.p[1] == '/')
		str_puts(&place, "/."); /* "//x" would be a host */
	str_add(&place, path.p, path.len);
	http1_add_field(out, field->name, str_slice(&place));
}

static bool is_domain(struct slice attribute)
{
	struct slice rest = attribute, name, pair;

	return preview_pass_next_cookie(&rest, &name, &pair) && http1_is(name, "domain");
}

/* Without what would take it to the hosts of other previews. One of our name stays out, and one without a name, since a
 * browser sends its value as it is, whatever name stands in it. */
static void add_set_cookie(struct str *out, const struct http1_field *field)
{
	struct slice rest = field->value, part, pair;
	scoped_str struct str kept = {0};
	bool is_first = true;

	while (rest.len > 0) {
		const char *end = memchr(rest.p, ';', rest.len);

		part = (struct slice){.p = rest.p, .len = end ? (size_t)(end - rest.p) : rest.len};
		rest.p += part.len + (end != NULL);
		rest.len -= part.len + (end != NULL);
		if (is_first) {
			struct slice first = part, name;

			if (!memchr(part.p, '=', part.len) ||
				!preview_pass_next_cookie(&first, &name, &pair) || name.len == 0 ||
				preview_pass_is_ours(name))
				return;
		} else if (is_domain(part)) {
			continue;
		}
		str_puts(&kept, is_first ? "" : ";");
		str_add(&kept, part.p, part.len);
		is_first = false;
	}
	if (kept.len > 0)
		http1_add_field(out, field->name, str_slice(&kept));
}

static void add_answer_field(struct str *out, const struct http1_head *answer,
	const struct http1_field *field, const struct preview_way *way)
{
	struct slice name = field->name;

	if (is_hop(answer, name) || is_in(name, reaching))
		return;
	if (http1_is(name, "set-cookie"))
		add_set_cookie(out, field);
	else if (http1_is(name, "location"))
		add_location(out, field, way);
	else
		http1_add_field(out, name, field->value);
}

/* What has no end of its own is chunked, and for who does not know chunks ends with the connection. */
static enum http1_framing framing_of(
	const struct http1_head *answer, const struct http1_head *request)
{
	if (answer->framing == HTTP1_NO_BODY || answer->framing == HTTP1_LENGTH)
		return answer->framing;
	return request->minor > 0 ? HTTP1_CHUNKED : HTTP1_UNTIL_CLOSE;
}

struct preview_answer preview_head_add_answer(const struct http1_head *answer,
	const struct http1_head *request, const struct preview_way *way, bool is_last,
	struct str *out)
{
	struct preview_answer how = {
		.framing = framing_of(answer, request), .is_last = is_last || request->minor == 0};
	bool is_informational = answer->status < 200;

	http1_add_status(out, answer->status, answer->reason, 1);
	for (size_t i = 0; i < answer->n_fields; i++)
		add_answer_field(out, answer, &answer->fields[i], way);
	if (answer->status == 101) {
		add_upgrade(out);
	} else if (!is_informational) {
		bool is_told = how.framing == HTTP1_NO_BODY && answer->has_length &&
		               answer->status != 204; /* how long it would be */

		add_framing(out, is_told ? HTTP1_LENGTH : how.framing, answer->length);
		if (how.is_last)
			http1_add_field(out, slice_of("Connection"), slice_of("close"));
	}
	http1_add_end(out);
	return how;
}
