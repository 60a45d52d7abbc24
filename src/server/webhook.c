/* SPDX-License-Identifier: Apache-2.0 */
#include "server/webhook.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "proto/address_range.h"
#include "proto/url.h"
#include "util/base64.h"
#include "util/clock.h"
#include "util/digest.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define SECRET_PREFIX "whsec_"
#define SECRET_BYTES  32
#define ID_HEX        32

static const char *const kinds[] = {
	"sandbox.created",
	"sandbox.started",
	"sandbox.paused",
	"sandbox.woken",
	"sandbox.suspended",
	"sandbox.resumed",
	"sandbox.stopped",
	"sandbox.removed",
	"sandbox.error",
	"exec.end",
	"net.held",
	"net.asked",
	WEBHOOK_FILES,
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

void webhook_free(struct webhook *webhook)
{
	if (!webhook)
		return;
	if (webhook->secret)
		explicit_bzero(webhook->secret, strlen(webhook->secret));
	free(webhook->secret);
	free(webhook->url);
	free(webhook->sandbox);
	webhook_paths_done(&webhook->paths);
	free(webhook);
}

static int find_kind(const char *name, struct err *err)
{
	scoped_str struct str all = {0};

	for (size_t i = 0; i < N_KINDS; i++) {
		if (name && strcmp(kinds[i], name) == 0)
			return (int)i;
		str_printf(&all, "%s%s", i ? ", " : "", kinds[i]);
	}
	return err_set(err, -EINVAL, "member 'events': want a list of %s", all.p);
}

bool webhook_hears(const struct webhook *webhook, const char *kind)
{
	for (size_t i = 0; i < N_KINDS; i++)
		if (webhook->kinds >> i & 1 && strcmp(kinds[i], kind) == 0)
			return true;
	return false;
}

int webhook_read_kinds(const json_t *list, bool has_paths, unsigned *ret_kinds, struct err *err)
{
	*ret_kinds = 0;
	if (!list || json_is_null(list)) {
		for (size_t i = 0; i < N_KINDS; i++)
			if (has_paths || strcmp(kinds[i], WEBHOOK_FILES) != 0)
				*ret_kinds |= 1u << i;
		return 0;
	}
	if (json_array_size(list) == 0)
		return find_kind(NULL, err);
	for (size_t i = 0; i < json_array_size(list); i++) {
		int kind = find_kind(json_string_value(json_array_get(list, i)), err);

		if (kind < 0)
			return kind;
		*ret_kinds |= 1u << kind;
	}
	return 0;
}

int webhook_check_url(const char *url, bool may_be_private, struct err *err)
{
	const struct address_range *range = NULL;
	struct url parts;

	if (!url || strlen(url) > WEBHOOK_URL_MAX || url_read(slice_of(url), &parts) < 0 ||
		(strcmp(parts.scheme, "http") != 0 && strcmp(parts.scheme, "https") != 0))
		return err_set(err, -EINVAL,
			"member 'url': want http:// or https://, of at most %d bytes",
			WEBHOOK_URL_MAX);
	if (parts.authority.user.p)
		return err_set(err, -EINVAL,
			"member 'url': a webhook is signed, so it has no name or password before "
			"'@'");
	if (parts.authority.host.kind != URL_NAME && !may_be_private)
		range = address_range_find(parts.authority.host.address);
	if (range)
		return err_set(err, -EPERM,
			"member 'url': %s is %s, where no webhook of this account may go; whoever "
			"runs the server can allow it (\"private\" in its configuration)",
			parts.authority.host.text, range->what);
	return 0;
}

static void add_kinds(struct jsonw *j, unsigned bits)
{
	jsonw_key(j, "events");
	jsonw_array(j);
	for (size_t i = 0; i < N_KINDS; i++)
		if (bits >> i & 1)
			jsonw_text(j, kinds[i]);
	jsonw_array_end(j);
}

static void add_paths(struct jsonw *j, const struct webhook_paths *paths)
{
	jsonw_key(j, "paths");
	jsonw_array(j);
	for (size_t i = 0; i < paths->n; i++)
		jsonw_text(j, paths->items[i]);
	jsonw_array_end(j);
}

static char *label_of(const char *account, const char *id)
{
	return mem_printf("webhook %s %s", account, id);
}

int webhook_write_object(const struct webhook *webhook, const char *account,
	const struct secret_box *box, struct str *out, struct err *err)
{
	scoped_mem char *label = label_of(account, webhook->id);
	scoped_str struct str sealed = {0};
	struct jsonw j = jsonw_to(out);
	int r = secret_box_seal(box, slice_of(label), slice_of(webhook->secret), &sealed, err);

	if (r < 0)
		return r;
	jsonw_object(&j);
	jsonw_ktext(&j, "url", webhook->url);
	add_kinds(&j, webhook->kinds);
	jsonw_ktext(&j, "sandbox", webhook->sandbox);
	if (webhook->paths.n > 0)
		add_paths(&j, &webhook->paths);
	jsonw_ktext(&j, "sealed_secret", sealed.p);
	jsonw_kint(&j, "created_ms", webhook->created_ms);
	jsonw_object_end(&j);
	return 0;
}

static int read_secret(const struct store_object *object, const char *sealed,
	const struct secret_box *box, char **ret_secret)
{
	scoped_mem char *label = label_of(object->account, object->name);
	struct str secret = {0};
	int r = secret_box_unseal(box, slice_of(label), slice_of(sealed), &secret, NULL);

	*ret_secret = str_take(&secret);
	return r;
}

int webhook_read_object(const struct store_object *object, const struct secret_box *box,
	struct webhook **ret_webhook)
{
	scoped(webhook) struct webhook *webhook = new0(struct webhook);
	json_t *root = json_loads(object->json, 0, NULL);
	const char *url = json_string_value(json_object_get(root, "url"));
	const char *sealed = json_string_value(json_object_get(root, "sealed_secret"));
	int r = url && sealed && id_is_valid("wh", object->name) ? 0 : -EINVAL;

	if (r == 0)
		r = webhook_paths_read(json_object_get(root, "paths"), &webhook->paths, NULL);
	if (r == 0)
		r = webhook_read_kinds(json_object_get(root, "events"), webhook->paths.n > 0,
			&webhook->kinds, NULL);
	if (r == 0)
		r = read_secret(object, sealed, box, &webhook->secret);
	if (r == 0) {
		memcpy(webhook->id, object->name, ID_SIZE);
		webhook->url = mem_dup(url);
		webhook->sandbox = mem_dup(json_string_value(json_object_get(root, "sandbox")));
		webhook->created_ms = json_integer_value(json_object_get(root, "created_ms"));
		*ret_webhook = take(&webhook);
	}
	json_decref(root);
	return r;
}

void webhook_write(const struct webhook *webhook, bool has_secret, struct str *out)
{
	struct jsonw j = jsonw_to(out);
	char at[CLOCK_TEXT_LEN];

	clock_format(webhook->created_ms, at);
	jsonw_object(&j);
	jsonw_ktext(&j, "id", webhook->id);
	jsonw_ktext(&j, "url", webhook->url);
	add_kinds(&j, webhook->kinds);
	jsonw_ktext(&j, "sandbox", webhook->sandbox);
	if (webhook->paths.n > 0)
		add_paths(&j, &webhook->paths);
	else
		jsonw_knull(&j, "paths");
	jsonw_ktext(&j, "created_at", at);
	if (has_secret)
		jsonw_ktext(&j, "secret", webhook->secret);
	jsonw_object_end(&j);
}

void webhook_new_secret(char ret_secret[WEBHOOK_SECRET_SIZE])
{
	scoped_str struct str text = {0};
	unsigned char bytes[SECRET_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		abort(); /* not for so few bytes, once the system is up */
	str_puts(&text, SECRET_PREFIX);
	jsonw_base64(&text, bytes, sizeof(bytes));
	memccpy(ret_secret, text.p, '\0', WEBHOOK_SECRET_SIZE);
	explicit_bzero(bytes, sizeof(bytes));
	explicit_bzero(text.p, text.len);
}

void webhook_delivery_id(
	const struct webhook *webhook, const char *subject, int64_t n, char ret_id[WEBHOOK_ID_SIZE])
{
	scoped_mem char *text = mem_printf("%s %s %lld", webhook->id, subject, (long long)n);
	char hex[DIGEST_HEX_SIZE];

	digest_of(text, strlen(text), hex);
	memcpy(ret_id, "wd_", 3);
	memcpy(ret_id + 3, hex, ID_HEX);
	ret_id[3 + ID_HEX] = '\0';
}

int webhook_sign(const char *secret, const char *id, int64_t at_s, struct slice body,
	char ret_signature[WEBHOOK_SIGN_SIZE])
{
	static const size_t prefix_len = sizeof(SECRET_PREFIX) - 1;
	scoped_str struct str key = {0}, text = {0}, signature = {0};
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	if (strncmp(secret, SECRET_PREFIX, prefix_len) != 0 ||
		base64_decode(slice_of(secret + prefix_len), &key) < 0)
		return -EINVAL;
	str_printf(&text, "%s.%lld.", id, (long long)at_s);
	str_add(&text, body.p, body.len);
	if (!HMAC(EVP_sha256(), key.p, (int)key.len, (const unsigned char *)text.p, text.len, mac,
		    &len))
		return -EINVAL;
	explicit_bzero(key.p, key.len);
	str_puts(&signature, "v1,");
	jsonw_base64(&signature, mac, len);
	memccpy(ret_signature, signature.p, '\0', WEBHOOK_SIGN_SIZE);
	return 0;
}
