/* SPDX-License-Identifier: Apache-2.0 */
/* Hears of revoked keys. A thread with a connection of its own waits for what other replicas say (PostgreSQL's
 * NOTIFY); where it was cut off, something may have been missed, and it says so (NULL) once it hears again. Its own
 * process is told directly, so on SQLite there is no thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/store_internal.h"
#include "util/mem.h"

#define LOOK_MS 500 /* how long the end of the store may wait for the thread */

struct store_listener {
	struct store *store;
	void (*fn)(const char *key, void *arg);
	void *arg;
	pthread_t thread;
	bool has_thread;
	atomic_bool is_ending;
};

static struct db *open_channel(const struct store *store, struct err *err)
{
	struct db *db = NULL;

	if (store->driver->open(store->place, DB_READ, &db, err) < 0)
		return NULL;
	db->err = err;
	if (store->driver->script(db, "LISTEN cloche") < 0) {
		db_close(db);
		return NULL;
	}
	db->err = NULL;
	return db;
}

static void *serve(void *arg)
{
	struct store_listener *l = arg;
	const struct db_driver *driver = l->store->driver;
	char key[STORE_NAME_MAX + 1];
	struct db *db = NULL;
	int r;

	while (!atomic_load(&l->is_ending)) {
		if (!db) {
			db = open_channel(l->store, NULL);
			if (db)
				l->fn(NULL, l->arg);
			else
				(void)usleep(LOOK_MS * 1000);
			continue;
		}
		r = driver->listen(db, LOOK_MS, key, sizeof(key));
		if (r > 0)
			l->fn(key, l->arg);
		if (r < 0) {
			db_close(db);
			db = NULL;
		}
	}
	db_close(db);
	return NULL;
}

int store_on_revoked(
	struct store *store, void (*fn)(const char *key, void *arg), void *arg, struct err *err)
{
	struct store_listener *l = new0(struct store_listener);
	int r = 0;

	l->store = store;
	l->fn = fn;
	l->arg = arg;
	if (store->driver->listen)
		r = -pthread_create(&l->thread, NULL, serve, l);
	if (r < 0) {
		free(l);
		return err_set(err, r, "start the thread that hears of revoked keys: %m");
	}
	l->has_thread = store->driver->listen != NULL;
	store->listener = l;
	return 0;
}

void store_listener_free(struct store_listener *l)
{
	if (!l)
		return;
	atomic_store(&l->is_ending, true);
	if (l->has_thread)
		(void)pthread_join(l->thread, NULL);
	free(l);
}

void store_listener_tell(struct store_listener *l, const char *key)
{
	if (l)
		l->fn(key, l->arg);
}
