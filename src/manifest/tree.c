/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/tree_internal.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "util/str.h"

#define ITEMS_MIN 64

/* ---- lists ---- */

struct tree_entry *tree_add(struct tree *tree, char *path)
{
	struct tree_entry *entry;

	if ((tree->n & (tree->n - 1)) == 0)
		tree->items = mem_grow(tree->items, tree->n < ITEMS_MIN ? ITEMS_MIN : 2 * tree->n,
			sizeof(*tree->items));
	entry = &tree->items[tree->n++];
	*entry = (struct tree_entry){.path = path};
	return entry;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct tree_entry *)a)->path, ((const struct tree_entry *)b)->path);
}

void tree_sort(struct tree *tree)
{
	if (tree->n > 1)
		qsort(tree->items, tree->n, sizeof(*tree->items), by_path);
}

void tree_done(struct tree *tree)
{
	for (size_t i = 0; i < tree->n; i++) {
		free(tree->items[i].path);
		free(tree->items[i].target);
	}
	free(tree->items);
	*tree = (struct tree){0};
}

char *tree_path_below(const char *folder, const char *name)
{
	scoped_str struct str path = {0};

	if (*folder) {
		str_reserve(&path, strlen(folder) + strlen(name) + 1);
		str_puts(&path, folder);
		str_putc(&path, '/');
	}
	str_puts(&path, name);
	return str_take(&path);
}

/* Takes what one thread found. */
static void join(struct tree *all, struct tree *part)
{
	if (part->n > 0) {
		all->items = mem_grow(all->items, all->n + part->n, sizeof(*all->items));
		memcpy(&all->items[all->n], part->items, part->n * sizeof(*all->items));
	}
	all->n += part->n;
	all->bytes += part->bytes;
	all->vanished += part->vanished;
	free(part->items);
	*part = (struct tree){0};
}

static void run(void *arg, struct pool_job *head)
{
	struct tree_worker *worker = arg;
	struct tree_job *job = (struct tree_job *)head;
	size_t before = worker->found.n;

	if (__atomic_load_n(&worker->work->n_found, __ATOMIC_RELAXED) <=
		TREE_ENTRIES_MAX) /* else only emptied */
		tree_walk(worker, job);
	__atomic_add_fetch(&worker->work->n_found, worker->found.n - before, __ATOMIC_RELAXED);
	tree_job_free(job);
}

int tree_read(const struct tree_config *config, struct tree *ret_tree, struct err *err)
{
	struct tree_work work = {.config = config, .pool = POOL_INIT(run)};
	struct tree_worker workers[POOL_THREADS_MAX] = {0};
	void *of[POOL_THREADS_MAX];
	size_t n = pool_n_threads();
	struct tree tree = {0};

	pool_push(&work.pool, &tree_job_new(mem_dup(""))->head);
	for (size_t i = 0; i < n; i++) {
		workers[i].work = &work;
		of[i] = &workers[i];
	}
	pool_run(&work.pool, of, n);
	for (size_t i = 0; i < n; i++)
		join(&tree, &workers[i].found);
	for (size_t i = 0; i < n; i++)
		free(workers[i].buffer);
	if (tree.n > TREE_ENTRIES_MAX) {
		tree_done(&tree);
		return err_set(err, -EFBIG, "more than %d files and folders", TREE_ENTRIES_MAX);
	}
	tree_sort(&tree);
	*ret_tree = tree;
	return 0;
}
