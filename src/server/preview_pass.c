/* SPDX-License-Identifier: Apache-2.0 */
#include "server/preview_pass.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "util/jsonw.h"
#include "util/mem.h"

#define OPEN_TOKEN "/.cloche/open?token="

static char *label_of(const char *id)
{
	return mem_printf("preview pass %s", id);
}

static const char *cookie_name(bool is_tls)
{
	return is_tls ? PREVIEW_COOKIE_TLS : PREVIEW_COOKIE;
}

int preview_pass_add_cookie(const struct secret_box *box, const struct preview *preview,
	const char *key, int64_t now_s, bool is_tls, struct str *out, struct err *err)
{
	scoped_mem char *label = label_of(preview->id);
	scoped_str struct str text = {0}, value = {0};
	struct jsonw j = jsonw_to(&text);
	int r;

	jsonw_object(&j);
	jsonw_ktext(&j, "key", key);
	jsonw_ktext(&j, "round", preview->round);
	jsonw_kint(&j, "expires_s", now_s + PREVIEW_PASS_S);
	jsonw_object_end(&j);
	str_printf(&value, "%s=", cookie_name(is_tls));
	r = secret_box_seal(box, slice_of(label), str_slice(&text), &value, err);
	if (r < 0)
		return r;
	str_printf(&value, "; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax%s", PREVIEW_PASS_S,
		is_tls ? "; Secure" : "");
	http1_add_field(out, slice_of("Set-Cookie"), str_slice(&value));
	return 0;
}

static int read_pass(const struct secret_box *box, const char *id, struct slice sealed,
	int64_t now_s, struct preview_pass *ret)
{
	scoped_mem char *label = label_of(id);
	scoped_str struct str text = {0};
	struct preview_pass pass = {0};
	const char *key, *round;
	json_t *root;
	int r = secret_box_unseal(box, slice_of(label), sealed, &text, NULL);

	if (r < 0)
		return r;
	root = json_loads(text.p, 0, NULL);
	key = json_string_value(json_object_get(root, "key"));
	round = json_string_value(json_object_get(root, "round"));
	pass.expires_s = json_integer_value(json_object_get(root, "expires_s"));
	if (!key || !round || !id_is_valid("ke", key) || pass.expires_s <= now_s)
		r = -ENOENT;
	if (r == 0) {
		snprintf(pass.key, sizeof(pass.key), "%s", key);
		snprintf(pass.round, sizeof(pass.round), "%s", round);
		*ret = pass;
	}
	json_decref(root);
	return r;
}

static struct slice trim(struct slice text)
{
	while (text.len > 0 && (*text.p == ' ' || *text.p == '\t')) {
		text.p++;
		text.len--;
	}
	while (text.len > 0 && (text.p[text.len - 1] == ' ' || text.p[text.len - 1] == '\t'))
		text.len--;
	return text;
}

bool preview_pass_next_cookie(struct slice *rest, struct slice *ret_name, struct slice *ret_pair)
{
	while (rest->len > 0) {
		const char *end = memchr(rest->p, ';', rest->len);
		struct slice pair = {
			.p = rest->p, .len = end ? (size_t)(end - rest->p) : rest->len};
		const char *is;

		rest->p += pair.len + (end != NULL);
		rest->len -= pair.len + (end != NULL);
		pair = trim(pair);
		if (pair.len == 0)
			continue;
		is = memchr(pair.p, '=', pair.len);
		*ret_pair = pair;
		*ret_name = trim(
			(struct slice){.p = pair.p, .len = is ? (size_t)(is - pair.p) : pair.len});
		return true;
	}
	return false;
}

bool preview_pass_is_ours(struct slice name)
{
	return http1_is(name, PREVIEW_COOKIE) || http1_is(name, PREVIEW_COOKIE_TLS);
}

int preview_pass_find(const struct secret_box *box, const char *id, const struct http1_head *head,
	int64_t now_s, bool is_tls, struct preview_pass *ret_pass)
{
	int tries = 0;

	for (size_t i = 0; i < head->n_fields; i++) {
		struct slice rest = head->fields[i].value, name, pair;

		if (!http1_is(head->fields[i].name, "cookie"))
			continue;
		while (preview_pass_next_cookie(&rest, &name, &pair)) {
			struct slice value = {.p = name.p + name.len,
				.len = (size_t)(pair.p + pair.len - name.p) - name.len};

			if (!slice_is(name, cookie_name(is_tls)) || value.len == 0 ||
				*value.p != '=')
				continue;
			if (tries++ == PREVIEW_COOKIE_TRIES)
				return -ENOENT;
			value.p++;
			value.len--;
			if (read_pass(box, id, value, now_s, ret_pass) == 0)
				return 0;
		}
	}
	return -ENOENT;
}

void preview_pass_new_token(char ret_token[PREVIEW_TOKEN_SIZE])
{
	unsigned char bytes[DIGEST_LEN];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		abort(); /* not for so few bytes, once the system is up */
	digest_hex(bytes, ret_token);
	explicit_bzero(bytes, sizeof(bytes));
}

void preview_pass_spent(const char *id, const char *token, char ret_name[PREVIEW_SPENT_SIZE])
{
	char hash[DIGEST_HEX_SIZE];

	digest_of(token, strlen(token), hash);
	snprintf(ret_name, PREVIEW_SPENT_SIZE, "%s.%s", id, hash);
}

struct slice preview_pass_token_in(struct slice target)
{
	struct slice token = {.p = target.p + strlen(OPEN_TOKEN)};

	if (!slice_starts(target, OPEN_TOKEN))
		return (struct slice){0};
	token.len = target.len - strlen(OPEN_TOKEN);
	for (size_t i = 0; i < token.len; i++)
		if (!strchr("0123456789abcdef", token.p[i]))
			return (struct slice){0};
	return token.len == PREVIEW_TOKEN_SIZE - 1 ? token : (struct slice){0};
}

/* By whichever scheme: something before us may have opened TLS. */
static bool is_own_origin(struct slice origin, struct slice host)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(schemes[i]);

		if (slice_starts(origin, schemes[i]) && origin.len - n == host.len &&
			strncasecmp(origin.p + n, host.p, host.len) == 0)
			return true;
	}
	return false;
}

static size_t count(const struct http1_head *head, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < head->n_fields; i++)
		n += http1_is(head->fields[i].name, name);
	return n;
}

bool preview_pass_is_at_home(const struct http1_head *head)
{
	struct slice origin = http1_find(head, "origin"), site = http1_find(head, "sec-fetch-site");

	if (count(head, "origin") > 1 || count(head, "sec-fetch-site") > 1)
		return false;
	if (origin.p)
		return is_own_origin(origin, head->host);
	if (!site.p || http1_is(site, "same-origin") || http1_is(site, "none"))
		return true;
	/* Somebody followed a link from elsewhere. */
	return http1_is(http1_find(head, "sec-fetch-mode"), "navigate") &&
	       http1_is(http1_find(head, "sec-fetch-dest"), "document") &&
	       (slice_is(head->method, "GET") || slice_is(head->method, "HEAD"));
}

bool preview_pass_is_service_worker(const struct http1_head *head)
{
	return count(head, "service-worker") > 0 ||
	       http1_is(http1_find(head, "sec-fetch-dest"), "serviceworker");
}
