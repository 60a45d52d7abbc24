/* SPDX-License-Identifier: Apache-2.0 */
#include "server/webhooks.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "server/keep.h"
#include "server/row_shorten.h"
#include "server/webhook_sender.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/map.h"
#include "util/mem.h"

#define FRESH_MS   1000
#define AT_ONCE    128          /* deliveries of one call to the store */
#define BODY_MAX   (128u << 10) /* of what is sent; over it, long members stay out */
#define MEMBER_MAX 2048         /* of one, then */

struct hook_list { /* of an account */
	struct webhook *items[WEBHOOK_MAX];
	size_t n;
	int64_t read_ms; /* 0: to be read again */
};

struct webhooks {
	struct server *server;
	pthread_mutex_t lock;
	struct map *by_account;
};

struct webhooks *webhooks_new(struct server *server)
{
	struct webhooks *webhooks = new0(struct webhooks);

	webhooks->server = server;
	pthread_mutex_init(&webhooks->lock, NULL);
	webhooks->by_account = map_new();
	return webhooks;
}

static void empty(struct hook_list *list)
{
	while (list->n > 0)
		webhook_free(list->items[--list->n]);
}

void webhooks_free(struct webhooks *webhooks)
{
	struct slice key;
	void *list;

	if (!webhooks)
		return;
	for (size_t i = 0; map_next(webhooks->by_account, &i, &key, &list);) {
		empty(list);
		free(list);
	}
	map_free(webhooks->by_account);
	pthread_mutex_destroy(&webhooks->lock);
	free(webhooks);
}

bool webhooks_may_be_private(const struct server *server, const char *account)
{
	const json_t *accounts = json_object_get(server->config, "accounts");

	return json_is_true(json_object_get(json_object_get(accounts, account), "private"));
}

/* ---- which there are ---- */

struct reading {
	const struct server *server;
	struct hook_list *list;
};

static int on_object(const struct store_object *object, void *arg)
{
	const struct reading *reading = arg;
	struct hook_list *list = reading->list;

	if (list->n < WEBHOOK_MAX &&
		webhook_read_object(object, reading->server->secrets, &list->items[list->n]) == 0)
		list->n++;
	return 0;
}

/* Of the account, no older than FRESH_MS. The lock is held. */
static int get_list(struct webhooks *webhooks, const char *account, struct hook_list **ret_list,
	struct err *err)
{
	void **slot = map_slot(webhooks->by_account, slice_of(account));
	struct hook_list *list = *slot ? *slot : (*slot = new0(struct hook_list));
	struct reading reading = {webhooks->server, list};
	int64_t now = clock_mono_ns() / CLOCK_NS_PER_MS;
	int r;

	*ret_list = list;
	if (list->read_ms && now < list->read_ms + FRESH_MS)
		return 0;
	empty(list);
	list->read_ms = 0;
	r = store_object_list(webhooks->server->store,
		&(struct store_object){.account = account, .kind = WEBHOOK_OBJECT}, WEBHOOK_MAX,
		on_object, &reading, err);
	if (r >= 0)
		list->read_ms = now;
	return r < 0 ? r : 0;
}

void webhooks_changed(struct webhooks *webhooks, const char *account)
{
	struct hook_list *list;

	pthread_mutex_lock(&webhooks->lock);
	list = map_find(webhooks->by_account, slice_of(account));
	if (list)
		list->read_ms = 0;
	pthread_mutex_unlock(&webhooks->lock);
}

static struct webhook *copy_of(const struct webhook *from)
{
	struct webhook *to = new0(struct webhook);

	*to = *from;
	to->url = mem_dup(from->url);
	to->secret = mem_dup(from->secret);
	to->sandbox = mem_dup(from->sandbox);
	webhook_paths_copy(&from->paths, &to->paths);
	return to;
}

int webhooks_get(struct webhooks *webhooks, const char *account, const char *id,
	struct webhook **ret_webhook, struct err *err)
{
	struct webhook *found = NULL;
	struct hook_list *list;
	int r;

	pthread_mutex_lock(&webhooks->lock);
	r = get_list(webhooks, account, &list, err);
	for (size_t i = 0; r == 0 && !found && i < list->n; i++)
		if (strcmp(list->items[i]->id, id) == 0)
			found = copy_of(list->items[i]);
	pthread_mutex_unlock(&webhooks->lock);
	if (r == 0 && !found)
		return err_set(err, -ENOENT, "there is no such webhook");
	*ret_webhook = found;
	return r;
}

/* ---- what is told ---- */

static char *body_of(const struct webhooks_event *event)
{
	scoped_str struct str out = {0}, data = {0};
	struct jsonw j = jsonw_to(&out);
	char at[CLOCK_TEXT_LEN];

	if (strlen(event->json) > BODY_MAX)
		row_shorten(slice_of(event->json), MEMBER_MAX, false, &data);
	else
		str_puts(&data, event->json);
	clock_format(event->at_ms, at);
	jsonw_object(&j);
	jsonw_ktext(&j, "type", event->kind);
	jsonw_ktext(&j, "timestamp", at);
	jsonw_key(&j, "data");
	jsonw_raw(&j, str_slice(&data));
	jsonw_object_end(&j);
	return str_take(&out);
}

struct feed {
	struct webhooks *webhooks;
	const char *account;
	int64_t now_ms;
	struct store_delivery rows[AT_ONCE];
	char ids[AT_ONCE][WEBHOOK_ID_SIZE], hooks[AT_ONCE][ID_SIZE];
	char *bodies[AT_ONCE]; /* of some; others share it */
	size_t n;
	int n_added;
};

static int flush(struct feed *feed, struct err *err)
{
	int r = feed->n ? store_delivery_add(
				  feed->webhooks->server->store, feed->rows, feed->n, err)
	                : 0;

	for (size_t i = 0; i < feed->n; i++) {
		free(feed->bodies[i]);
		feed->bodies[i] = NULL;
	}
	feed->n = 0;
	feed->n_added += r > 0 ? r : 0;
	return r < 0 ? r : 0;
}

/* What was told already must be told apart from what is new: by its delivery, which is kept for some days, and before that
 * nothing is told. */
static bool wants(
	const struct feed *feed, const struct webhook *webhook, const struct webhooks_event *event)
{
	int64_t oldest = feed->now_ms - keep_ms(feed->webhooks->server->config, KEEP_DELIVERIES);

	if (event->at_ms < webhook->created_ms || event->at_ms <= oldest)
		return false;
	if (webhook->sandbox && strcmp(webhook->sandbox, event->sandbox) != 0)
		return false;
	return webhook_hears(webhook, event->kind);
}

static void add(struct feed *feed, const struct webhook *webhook,
	const struct webhooks_event *event, char **body)
{
	size_t i = feed->n++;

	if (!*body)
		*body = feed->bodies[i] = body_of(event);
	webhook_delivery_id(webhook, event->sandbox, event->seq, feed->ids[i]);
	memcpy(feed->hooks[i], webhook->id, ID_SIZE);
	feed->rows[i] = (struct store_delivery){.id = feed->ids[i],
		.account = feed->account,
		.webhook = feed->hooks[i],
		.due_ms = feed->now_ms,
		.created_ms = feed->now_ms,
		.json = *body};
}

/* Those of one event. */
static int feed_one(struct feed *feed, const struct webhooks_event *event, struct err *err)
{
	struct webhooks *webhooks = feed->webhooks;
	struct hook_list *list;
	char *body = NULL;
	int r = feed->n + WEBHOOK_MAX > AT_ONCE ? flush(feed, err) : 0;

	if (r < 0)
		return r;
	pthread_mutex_lock(&webhooks->lock);
	r = get_list(webhooks, feed->account, &list, err);
	for (size_t i = 0; r == 0 && i < list->n; i++)
		if (wants(feed, list->items[i], event))
			add(feed, list->items[i], event, &body);
	pthread_mutex_unlock(&webhooks->lock);
	return r;
}

int webhooks_feed(struct webhooks *webhooks, const char *account,
	const struct webhooks_event *events, size_t n, struct err *err)
{
	struct feed *feed = new0(struct feed);
	int r = 0;

	feed->webhooks = webhooks;
	feed->account = account;
	feed->now_ms = clock_wall_ms();
	for (size_t i = 0; r == 0 && i < n; i++)
		r = feed_one(feed, &events[i], err);
	if (r == 0)
		r = flush(feed, err);
	for (size_t i = 0; i < feed->n; i++)
		free(feed->bodies[i]);
	if (feed->n_added > 0)
		webhook_sender_wake(webhooks->server->sender);
	if (r == 0)
		r = feed->n_added;
	free(feed);
	return r;
}
