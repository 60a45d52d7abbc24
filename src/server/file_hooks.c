/* SPDX-License-Identifier: Apache-2.0 */
/* A worker looks up which there are, whose sandboxes live, and takes the locks; the loop begins and ends them. Replicas share one
 * host and one state, so a lock is the kernel's, on one byte of a file for each webhook: it goes with the process. */
#include "server/file_hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "server/file_hook.h"
#include "server/workers.h"
#include "util/digest.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"

#define EVERY_S   1
#define HOOKS_MAX 1000
#define LOCKS     "server/watches.lock"

struct held {
	struct file_hooks *hooks;
	struct file_hook *hook;
	char id[ID_SIZE];
};

struct file_hooks {
	struct work work; /* one look at a time */
	struct server *server;
	struct map *held; /* by id */
	struct event *timer;
	int lock_fd;
	atomic_bool is_ending;
	bool is_looking, wants_again;
	/* the look's */
	struct map *known; /* ids that were held when it began */
	struct map *there; /* ids there are */
	struct candidate *first;
	int r;
	struct err err;
};

struct candidate { /* one that is not watched for yet */
	struct candidate *next;
	char *account;
	struct webhook *webhook;
	bool is_ours; /* locked */
};

struct changed {
	struct work work;
	struct file_hooks *hooks;
};

static void candidate_free(struct candidate *one)
{
	webhook_free(one->webhook);
	free(one->account);
	free(one);
}

/* ---- locks ---- */

static off_t place_of(const char *id)
{
	char hex[DIGEST_HEX_SIZE];

	digest_of(id, strlen(id), hex);
	hex[15] = '\0'; /* 60 bits */
	return (off_t)strtoull(hex, NULL, 16);
}

static int lock(const struct file_hooks *hooks, const char *id, short type)
{
	struct flock flock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = place_of(id), .l_len = 1};

	return fcntl(hooks->lock_fd, F_OFD_SETLK, &flock) < 0 ? -errno : 0;
}

/* ---- a worker's look ---- */

static int on_object(const struct store_object *object, void *arg)
{
	struct file_hooks *hooks = arg;
	struct candidate *one;

	*map_slot(hooks->there, slice_of(object->name)) = hooks;
	if (map_find(hooks->known, slice_of(object->name)))
		return 0;
	one = new0(struct candidate);
	if (webhook_read_object(object, hooks->server->secrets, &one->webhook) < 0) {
		free(one);
		return 0;
	}
	one->account = mem_dup(object->account);
	one->next = hooks->first;
	hooks->first = one;
	return 0;
}

static int take_state(const struct store_sandbox *sandbox, void *arg)
{
	bool *lives = arg;

	*lives = strcmp(sandbox->state, "running") == 0 || strcmp(sandbox->state, "paused") == 0;
	return 0;
}

static void run_look(struct work *work)
{
	struct file_hooks *hooks = (struct file_hooks *)work;
	const struct store_object which = {.kind = WEBHOOK_OBJECT, .json = WEBHOOK_PATHS_MARK};

	hooks->r = store_object_with(
		hooks->server->store, &which, HOOKS_MAX, on_object, hooks, &hooks->err);
	for (struct candidate *one = hooks->first; one && hooks->r >= 0; one = one->next) {
		bool lives = false;
		const char *sandbox = one->webhook->sandbox;

		if (sandbox && store_sandbox_get(hooks->server->store, one->account, sandbox,
				       take_state, &lives, NULL) >= 0)
			one->is_ours = lives && lock(hooks, one->webhook->id, F_WRLCK) == 0;
	}
}

/* ---- the loop's part ---- */

static void drop(struct file_hooks *hooks, struct held *held)
{
	(void)map_remove(hooks->held, slice_of(held->id));
	file_hook_free(held->hook);
	(void)lock(hooks, held->id, F_UNLCK);
	free(held);
}

static void on_end(void *arg)
{
	struct held *held = arg;

	drop(held->hooks, held);
}

static void begin(struct file_hooks *hooks, struct candidate *one)
{
	struct held *held = new0(struct held);

	held->hooks = hooks;
	memcpy(held->id, one->webhook->id, ID_SIZE);
	*map_slot(hooks->held, slice_of(held->id)) = held;
	held->hook = file_hook_new(hooks->server, &(struct file_hook_ask){.account = one->account,
							  .webhook = take(&one->webhook),
							  .on_end = on_end,
							  .arg = held});
}

/* Those that were removed. */
static void drop_gone(struct file_hooks *hooks)
{
	struct slice id;
	void *held;

	for (size_t i = 0; map_next(hooks->held, &i, &id, &held);)
		if (!map_find(hooks->there, id))
			drop(hooks, held);
}

static void look_again(struct file_hooks *hooks, int seconds)
{
	const struct timeval in = {.tv_sec = seconds};

	if (!atomic_load(&hooks->is_ending))
		event_add(hooks->timer, &in);
}

static void look_done(struct work *work)
{
	struct file_hooks *hooks = (struct file_hooks *)work;
	bool is_ending = atomic_load(&hooks->is_ending);
	struct candidate *one;

	hooks->is_looking = false;
	if (hooks->r < 0 && !is_ending)
		log_warn("which webhooks hear of files is not known for now: %s", hooks->err.msg);
	if (hooks->r >= 0 && !is_ending)
		drop_gone(hooks);
	while ((one = hooks->first)) {
		hooks->first = one->next;
		if (one->is_ours && !is_ending)
			begin(hooks, one);
		candidate_free(one);
	}
	map_free(take(&hooks->known));
	map_free(take(&hooks->there));
	look_again(hooks, hooks->wants_again ? 0 : EVERY_S);
	hooks->wants_again = false;
}

static void look(struct file_hooks *hooks)
{
	struct slice id;
	void *held;

	hooks->is_looking = true;
	hooks->known = map_new();
	hooks->there = map_new();
	for (size_t i = 0; map_next(hooks->held, &i, &id, &held);)
		*map_slot(hooks->known, id) = held;
	hooks->work = (struct work){.run = run_look, .done = look_done};
	workers_add(hooks->server->slow, &hooks->work);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	look(ctx);
}

static void on_changed(struct work *work)
{
	struct changed *changed = (struct changed *)work;

	if (changed->hooks->is_looking)
		changed->hooks->wants_again = true;
	else
		look_again(changed->hooks, 0);
	free(changed);
}

void file_hooks_changed(struct file_hooks *hooks)
{
	struct changed *changed = new0(struct changed);

	changed->work.done = on_changed;
	changed->hooks = hooks;
	workers_post(hooks->server->workers, &changed->work);
}

int file_hooks_new(struct server *server, struct file_hooks **ret_hooks, struct err *err)
{
	scoped(file_hooks) struct file_hooks *hooks = new0(struct file_hooks);
	scoped_mem char *path = mem_printf("%s/" LOCKS, server->state_dir);

	hooks->server = server;
	hooks->held = map_new();
	hooks->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (hooks->lock_fd < 0)
		return err_set(err, -errno, "open '%s': %m", path);
	hooks->timer = evtimer_new(server->base, on_timer, hooks);
	look_again(hooks, 0);
	*ret_hooks = take(&hooks);
	return 0;
}

void file_hooks_stop(struct file_hooks *hooks)
{
	struct slice id;
	void *held;

	if (!hooks)
		return;
	atomic_store(&hooks->is_ending, true);
	(void)evtimer_del(hooks->timer);
	for (size_t i = 0; map_next(hooks->held, &i, &id, &held);)
		file_hook_flush(((struct held *)held)->hook);
}

void file_hooks_free(struct file_hooks *hooks)
{
	struct slice id;
	void *held;

	if (!hooks)
		return;
	if (hooks->timer)
		event_free(hooks->timer);
	for (size_t i = 0; map_next(hooks->held, &i, &id, &held);) {
		file_hook_free(((struct held *)held)->hook);
		free(held);
	}
	map_free(hooks->held);
	scoped_close(&hooks->lock_fd);
	free(hooks);
}
