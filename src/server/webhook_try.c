/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing of the process leaks into a transfer: no proxy of the environment, no redirect, no connection of another transfer
 * (which may have been allowed what this one is not), no cookies, no credentials. */
#include "server/webhook_try.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "server/webhook_target.h"
#include "util/clock.h"
#include "util/mem.h"

#define ANSWER_MAX 65536 /* bytes that are read, and dropped, before the connection is cut */
#define CONNECT_MS 5000L
#define TRIES_MAX  16 /* kept in the log of deliveries */
#define GONE       410

struct webhook_try *webhook_try_new(const struct store_delivery *delivery)
{
	struct webhook_try *one = new0(struct webhook_try);

	one->id = mem_dup(delivery->id);
	one->account = mem_dup(delivery->account);
	one->webhook = mem_dup(delivery->webhook);
	one->body = mem_dup(delivery->json);
	one->attempt = delivery->attempt;
	one->tries = json_loads(delivery->result, 0, NULL);
	if (!json_is_array(one->tries)) {
		json_decref(one->tries);
		one->tries = json_array();
	}
	return one;
}

void webhook_try_free(struct webhook_try *one)
{
	if (!one)
		return;
	if (one->easy)
		curl_easy_cleanup(one->easy);
	curl_slist_free_all(one->head);
	json_decref(one->tries);
	free(one->id);
	free(one->account);
	free(one->webhook);
	free(one->body);
	free(one);
}

/* The address is checked where it is used: between this and connect() nothing can change it. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct webhook_try *one = ctx;
	const char *refused =
		one->may_be_private ? NULL : webhook_target_refuses(&to->addr, to->addrlen);
	int fd;

	if (refused) {
		one->refused = refused;
		return CURL_SOCKET_BAD;
	}
	fd = socket(to->family, to->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, to->protocol);
	return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static size_t drop(char *bytes, size_t size, size_t n, void *ctx)
{
	struct webhook_try *one = ctx;

	one->n_dropped += size * n;
	return one->n_dropped > ANSWER_MAX ? 0 : size * n;
}

static void add_field(struct webhook_try *one, const char *name, const char *value)
{
	scoped_mem char *line = mem_printf("%s: %s", name, value);

	one->head = curl_slist_append(one->head, line);
}

static int add_fields(struct webhook_try *one, const struct webhook *webhook)
{
	char signature[WEBHOOK_SIGN_SIZE];
	int64_t at_s = one->started_ms / 1000;
	scoped_mem char *at = mem_printf("%lld", (long long)at_s);
	int r = webhook_sign(webhook->secret, one->id, at_s, slice_of(one->body), signature);

	if (r < 0)
		return r;
	add_field(one, "Content-Type", "application/json");
	add_field(one, "webhook-id", one->id);
	add_field(one, "webhook-timestamp", at);
	add_field(one, "webhook-signature", signature);
	one->head = curl_slist_append(one->head, "Expect:"); /* no round trip before the body */
	return one->head ? 0 : -ENOMEM;
}

int webhook_try_prepare(
	struct webhook_try *one, const struct webhook *webhook, int64_t timeout_ms, struct err *err)
{
	int r;

	one->started_ms = clock_wall_ms();
	one->easy = curl_easy_init();
	r = one->easy ? add_fields(one, webhook) : -ENOMEM;
	if (r < 0)
		return err_set(err, r, "make a request for webhook %s: %m", webhook->id);
	curl_easy_setopt(one->easy, CURLOPT_PRIVATE, one);
	curl_easy_setopt(one->easy, CURLOPT_URL, webhook->url);
	curl_easy_setopt(one->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(one->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(one->easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(one->easy, CURLOPT_PROXY, "");
	curl_easy_setopt(one->easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(one->easy, CURLOPT_FRESH_CONNECT, 1L);
	curl_easy_setopt(one->easy, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(one->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(one->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(one->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	curl_easy_setopt(one->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(one->easy, CURLOPT_OPENSOCKETDATA, one);
	curl_easy_setopt(one->easy, CURLOPT_WRITEFUNCTION, drop);
	curl_easy_setopt(one->easy, CURLOPT_WRITEDATA, one);
	curl_easy_setopt(one->easy, CURLOPT_ERRORBUFFER, one->why);
	curl_easy_setopt(one->easy, CURLOPT_USERAGENT, "Cloche/" CLOCHE_VERSION);
	curl_easy_setopt(one->easy, CURLOPT_HTTPHEADER, one->head);
	curl_easy_setopt(one->easy, CURLOPT_POST, 1L);
	curl_easy_setopt(one->easy, CURLOPT_POSTFIELDS, one->body);
	curl_easy_setopt(one->easy, CURLOPT_POSTFIELDSIZE, (long)strlen(one->body));
	return 0;
}

void webhook_try_note(struct webhook_try *one, int64_t status, const char *error)
{
	int64_t now = clock_wall_ms();
	char at[CLOCK_TEXT_LEN];
	json_t *note = json_object();

	clock_format(one->started_ms ? one->started_ms : now, at);
	json_object_set_new(note, "at", json_string(at));
	json_object_set_new(note, "status", status ? json_integer(status) : json_null());
	json_object_set_new(note, "error", error ? json_string(error) : json_null());
	json_object_set_new(note, "duration_ms",
		json_integer(one->started_ms && now > one->started_ms ? now - one->started_ms : 0));
	while (json_array_size(one->tries) >= TRIES_MAX)
		json_array_remove(one->tries, 0);
	json_array_append_new(one->tries, note);
}

/* An answer counts by its status, also one that was cut because it was long. */
enum webhook_outcome webhook_try_judge(struct webhook_try *one, CURLcode result)
{
	char refused[128];
	const char *error = NULL;
	long status = 0;

	(void)curl_easy_getinfo(one->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status < 200 && one->refused) {
		snprintf(refused, sizeof(refused), "the address is %s", one->refused);
		error = refused;
	} else if (status < 200)
		error = one->why[0] ? one->why : curl_easy_strerror(result);
	else if (status >= 300 && status < 400)
		error = "redirects are not followed";
	webhook_try_note(one, status, error);
	if (status >= 200 && status < 300)
		return WEBHOOK_SENT;
	return status == GONE ? WEBHOOK_NEVER : WEBHOOK_AGAIN;
}
