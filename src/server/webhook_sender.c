/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of its own, since it asks the store, which blocks: it alone has libcurl's multi handle and all transfers. Others only
 * wake it.
 *
 * waiting, due -> claimed (a lease, LEASE_MS) -> under way -> sent | waiting, due later | failed */
#include "server/webhook_sender.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "server/prometheus.h"
#include "server/webhook_try.h"
#include "server/webhooks.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

#define AT_ONCE 64
#define AT_ONCE_ONE \
	8 /* of one webhook, and in one claim: a slow one must not keep the others out */
#define LOOK_MS           1000
#define LEASE_MS          90000 /* longer than a try may take */
#define END_MS            2000
#define RETRIES_MAX       15

#define TIMEOUT_S_DEFAULT 15
#define TIMEOUT_S_MAX     60

static const int64_t retry_s_default[] = {5, 30, 120, 600, 3600, 4 * 3600, 12 * 3600};

struct webhook_sender {
	struct server *server;
	CURLM *multi;
	pthread_t thread;
	bool is_started;
	atomic_bool is_ending;
	int64_t timeout_ms;
	int64_t retry_ms[RETRIES_MAX];
	size_t n_retries;
	/* the thread's own */
	struct webhook_try *first;
	size_t n;
	int64_t next_ms; /* on the wall: what this process will try again soonest; 0: nothing */
};

/* ---- what came of one ---- */

static void put(struct webhook_sender *sender, const struct webhook_try *one, const char *state,
	int64_t due_ms)
{
	scoped_mem char *result = json_dumps(one->tries, JSON_COMPACT);
	struct err err = {0};
	int r = store_delivery_finish(sender->server->store,
		&(struct store_delivery){.id = one->id,
			.attempt = one->attempt,
			.state = state,
			.due_ms = due_ms,
			.result = result},
		&err);

	if (r < 0 && r != -ESTALE)
		complaint_warn(&sender->server->away,
			"delivery %s is sent again, since it was not noted down: %s", one->id,
			err.msg);
}

static void put_off(struct webhook_sender *sender, const struct webhook_try *one, int64_t due_ms)
{
	put(sender, one, "waiting", due_ms);
	if (!sender->next_ms || due_ms < sender->next_ms)
		sender->next_ms = due_ms;
}

static void settle(
	struct webhook_sender *sender, struct webhook_try *one, enum webhook_outcome outcome)
{
	size_t n = json_array_size(one->tries);
	bool is_again = outcome == WEBHOOK_AGAIN && n > 0 && n <= sender->n_retries;
	int64_t now = clock_wall_ms();

	prometheus_try(sender->server->prometheus, outcome == WEBHOOK_SENT ? PROMETHEUS_SENT
						   : is_again              ? PROMETHEUS_AGAIN
									   : PROMETHEUS_FAILED);
	if (outcome == WEBHOOK_SENT)
		put(sender, one, "sent", now);
	else if (is_again)
		put_off(sender, one, now + sender->retry_ms[n - 1]);
	else
		put(sender, one, "failed", now);
}

static void drop(struct webhook_sender *sender, struct webhook_try *one)
{
	struct webhook_try **at = &sender->first;

	while (*at && *at != one)
		at = &(*at)->next;
	if (*at)
		*at = one->next;
	sender->n--;
	(void)curl_multi_remove_handle(sender->multi, one->easy);
	webhook_try_free(one);
}

static void take_ended(struct webhook_sender *sender)
{
	const CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(sender->multi, &left))) {
		struct webhook_try *one = NULL;
		CURLcode result = message->data.result;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&one);
		settle(sender, one, webhook_try_judge(one, result));
		drop(sender, one);
	}
}

/* ---- the next ones ---- */

static size_t n_of(const struct webhook_sender *sender, const char *webhook)
{
	size_t n = 0;

	for (const struct webhook_try *one = sender->first; one; one = one->next)
		n += strcmp(one->webhook, webhook) == 0;
	return n;
}

/* 1: under way. 0: settled already. Negative: it cannot be said, and its lease will end. */
static int start(struct webhook_sender *sender, struct webhook_try *one, struct err *err)
{
	scoped(webhook) struct webhook *webhook = NULL;
	int r;

	r = webhooks_get(sender->server->webhooks, one->account, one->webhook, &webhook, err);
	if (r == -ENOENT) {
		webhook_try_note(one, 0, "the webhook was removed");
		settle(sender, one, WEBHOOK_NEVER);
		return 0;
	}
	if (r < 0)
		return r;
	one->may_be_private = webhooks_may_be_private(sender->server, one->account);
	r = webhook_try_prepare(one, webhook, sender->timeout_ms, err);
	if (r == 0 && curl_multi_add_handle(sender->multi, one->easy) != CURLM_OK)
		r = err_set(err, -ENOMEM, "start a transfer: %m");
	return r < 0 ? r : 1;
}

static int on_claimed(const struct store_delivery *delivery, void *arg)
{
	struct webhook_try **first = arg, *one = webhook_try_new(delivery);

	one->next = *first;
	*first = one;
	return 0;
}

/* Those that have enough under way. */
static void add_busy(const struct webhook_sender *sender, struct str *out)
{
	for (const struct webhook_try *one = sender->first; one; one = one->next)
		if (n_of(sender, one->webhook) >= AT_ONCE_ONE &&
			!(out->len > 0 && strstr(out->p, one->webhook)))
			str_printf(out, "%s ", one->webhook);
}

/* Takes some of what is due, as far as there is room; how many. */
static int claim(struct webhook_sender *sender)
{
	scoped_str struct str busy = {0};
	struct webhook_try *claimed = NULL, *one;
	struct err err = {0};
	int n = 0;

	add_busy(sender, &busy);
	if (sender->n + AT_ONCE_ONE <= AT_ONCE)
		n = store_delivery_claim(sender->server->store,
			&(struct store_claim){.now_ms = clock_wall_ms(),
				.lease_ms = LEASE_MS,
				.but = busy.p,
				.limit = AT_ONCE_ONE},
			on_claimed, &claimed, &err);
	if (n < 0)
		complaint_warn(&sender->server->away, "deliveries of webhooks wait: %s", err.msg);
	while ((one = claimed)) {
		int r;

		claimed = one->next;
		r = start(sender, one, &err);
		if (r < 0)
			log_warn("delivery %s waits: %s", one->id, err.msg);
		if (r <= 0) {
			webhook_try_free(one);
			continue;
		}
		one->next = sender->first;
		sender->first = one;
		sender->n++;
	}
	return n;
}

/* ---- the thread ---- */

/* What others made due, and retries of other replicas, are looked for now and then. */
static int wait_ms(struct webhook_sender *sender)
{
	int64_t left = sender->next_ms - clock_wall_ms();

	if (sender->next_ms == 0 || left > LOOK_MS)
		return LOOK_MS;
	if (left > 0)
		return (int)left;
	sender->next_ms = 0;
	return 0;
}

static void *send_all(void *arg)
{
	struct webhook_sender *sender = arg;
	int64_t end_ms = 0;

	while (!end_ms || (sender->n > 0 && clock_mono_ns() / CLOCK_NS_PER_MS < end_ms)) {
		int n_running, n = end_ms ? 0 : claim(sender);

		(void)curl_multi_perform(
			sender->multi, &n_running); /* each tells its own failure */
		take_ended(sender);
		(void)curl_multi_poll(sender->multi, NULL, 0, n > 0 ? 0 : wait_ms(sender), NULL);
		if (!end_ms && atomic_load(&sender->is_ending))
			end_ms = clock_mono_ns() / CLOCK_NS_PER_MS + END_MS;
	}
	while (sender->first) {
		put(sender, sender->first, "waiting", clock_wall_ms());
		drop(sender, sender->first);
	}
	return NULL;
}

static int read_settings(struct webhook_sender *sender, struct err *err)
{
	const json_t *settings = json_object_get(sender->server->config, "webhooks");
	const json_t *timeout = json_object_get(settings, "timeout_s");
	const json_t *retry = json_object_get(settings, "retry_s");
	double s = timeout ? json_number_value(timeout) : TIMEOUT_S_DEFAULT;

	if (settings && !json_is_object(settings))
		return err_set(err, -EINVAL, "--config: \"webhooks\" is an object");
	if (s <= 0 || s > TIMEOUT_S_MAX)
		return err_set(err, -EINVAL,
			"--config: \"webhooks\": 'timeout_s' is a number of seconds up to %d",
			TIMEOUT_S_MAX);
	sender->timeout_ms = (int64_t)(s * 1000);
	sender->n_retries = sizeof(retry_s_default) / sizeof(retry_s_default[0]);
	for (size_t i = 0; i < sender->n_retries; i++)
		sender->retry_ms[i] = retry_s_default[i] * 1000;
	if (!retry)
		return 0;
	sender->n_retries = json_array_size(retry);
	if (!json_is_array(retry) || sender->n_retries > RETRIES_MAX)
		return err_set(err, -EINVAL,
			"--config: \"webhooks\": 'retry_s' is a list of at most %d waits, in "
			"seconds",
			RETRIES_MAX);
	for (size_t i = 0; i < sender->n_retries; i++) {
		s = json_number_value(json_array_get(retry, i));
		if (s <= 0 || s > 30 * 86400.0)
			return err_set(err, -EINVAL,
				"--config: \"webhooks\": a wait in 'retry_s' is more than 0 s and "
				"at most 30 days");
		sender->retry_ms[i] = (int64_t)(s * 1000);
	}
	return 0;
}

int webhook_sender_new(struct server *server, struct webhook_sender **ret_sender, struct err *err)
{
	scoped(webhook_sender) struct webhook_sender *sender = new0(struct webhook_sender);
	sigset_t all, before;
	int r;

	sender->server = server;
	r = read_settings(sender, err);
	if (r < 0)
		return r;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
		!(sender->multi = curl_multi_init()))
		return err_set(err, -ENOMEM, "start libcurl");
	sigfillset(&all); /* signals are the loop's */
	pthread_sigmask(SIG_BLOCK, &all, &before);
	r = -pthread_create(&sender->thread, NULL, send_all, sender);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0)
		return err_set(err, r, "start a thread: %m");
	sender->is_started = true;
	*ret_sender = take(&sender);
	return 0;
}

void webhook_sender_wake(struct webhook_sender *sender)
{
	if (sender)
		(void)curl_multi_wakeup(sender->multi); /* else it looks a second later */
}

void webhook_sender_free(struct webhook_sender *sender)
{
	if (!sender)
		return;
	atomic_store(&sender->is_ending, true);
	if (sender->is_started) {
		(void)curl_multi_wakeup(sender->multi);
		pthread_join(sender->thread, NULL);
	}
	if (sender->multi)
		(void)curl_multi_cleanup(sender->multi);
	free(sender);
}
