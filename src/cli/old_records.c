/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/old_records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/records.h"
#include "cli/removal.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/scoped.h"

#define META_MAX  (4u << 20)
#define DEPTH_MAX 8 /* of folders in a record, which is its owner's */
#define BLOCK     512

struct one {
	char id[ID_SIZE];
	int64_t ended_ms, bytes;
	bool may_go, is_pending;
};

struct all {
	struct one *items;
	size_t n;
	int64_t bytes;
};

/* ---- what there is ---- */

static int64_t bytes_of(int dirfd, const char *name, int depth)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int64_t bytes = 0;
	struct dirent *e;
	struct stat st;

	if (!dir) {
		scoped_close(&fd);
		return 0;
	}
	while ((e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
			fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bytes += (int64_t)st.st_blocks * BLOCK;
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			bytes += bytes_of(fd, e->d_name, depth + 1);
	}
	closedir(dir);
	return bytes;
}

/* Of the seal, which is the last that is written; a record that was never sealed has a log. */
static int64_t ended_ms(int dirfd)
{
	struct stat st;

	if (fstatat(dirfd, "seal.json", &st, AT_SYMLINK_NOFOLLOW) < 0 &&
		fstatat(dirfd, "log.jsonl", &st, AT_SYMLINK_NOFOLLOW) < 0 && fstat(dirfd, &st) < 0)
		return clock_wall_ms();
	return (int64_t)st.st_mtim.tv_sec * 1000;
}

static bool is_there(const struct cli *cli, const char *folder, const char *id)
{
	scoped_mem char *path = mem_printf("%s/%s/%s", cli->state_dir, folder, id);

	return access(path, F_OK) == 0;
}

/* One of which nobody can say whose it is, is not ours to remove. */
static bool is_of_account(int dirfd)
{
	scoped_str struct str text = {0};
	bool is_of_account;
	json_t *meta;

	if (fdio_read_file(dirfd, "meta.json", META_MAX, &text) < 0)
		return true;
	meta = json_loadb(text.p, text.len, 0, NULL);
	is_of_account =
		!meta || json_is_string(json_object_get(json_object_get(meta, "spec"), "account"));
	json_decref(meta);
	return is_of_account;
}

static void take_one(const struct cli *cli, const char *id, struct all *all)
{
	scoped_str struct str dir = {0};
	scoped_fd int fd = -1;
	struct one *one;

	records_dir(cli, id, &dir);
	fd = open(dir.p, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || is_of_account(fd))
		return;
	all->items = mem_grow(all->items, all->n + 1, sizeof(*all->items));
	one = &all->items[all->n++];
	*one = (struct one){.ended_ms = ended_ms(fd),
		.bytes = bytes_of(fd, ".", 0),
		.may_go = !is_there(cli, "sandboxes", id),
		.is_pending = is_there(cli, "changes", id)};
	memcpy(one->id, id, ID_SIZE);
	all->bytes += one->bytes;
}

static int by_age(const void *a, const void *b)
{
	const struct one *x = a, *y = b;

	return (x->ended_ms > y->ended_ms) - (x->ended_ms < y->ended_ms);
}

static int take_all(const struct cli *cli, struct all *all, struct err *err)
{
	struct record_list list;
	int r = records_list(cli, &list, err);

	for (size_t i = 0; r == 0 && i < list.n; i++)
		take_one(cli, list.items[i].id, all);
	records_list_done(&list);
	if (all->n > 0)
		qsort(all->items, all->n, sizeof(*all->items), by_age);
	return r;
}

/* ---- what goes ---- */

static int remove_one(const struct cli *cli, const struct one *one, struct err *err)
{
	int r = removal_changes(cli, one->id, err);

	return r < 0 ? r : removal_record(cli, one->id, true, err);
}

int old_records_remove(const struct cli *cli, const struct old_records_limits *limits,
	struct old_records_removed *ret, struct err *err)
{
	struct all all = {0};
	int64_t now = clock_wall_ms();
	int r = 0, failure = 0;

	*ret = (struct old_records_removed){0};
	if (limits->older_ms == 0 && limits->max_bytes == 0)
		return 0;
	r = take_all(cli, &all, err);
	for (size_t i = 0; r == 0 && i < all.n; i++) {
		const struct one *one = &all.items[i];
		bool is_old = limits->older_ms > 0 && now - one->ended_ms > limits->older_ms;
		bool is_over = limits->max_bytes > 0 && all.bytes > limits->max_bytes;
		struct err why = {0};
		int failed;

		if (!one->may_go || !(is_old || is_over))
			continue;
		if (!is_old && one->is_pending) {
			ret->pending++;
			continue;
		}
		failed = remove_one(cli, one, &why);
		if (failed < 0) {
			log_warn("the record of %s stays: %s", one->id, why.msg);
			failure = failure ? failure : err_set(err, failed, "%s", why.msg);
			continue;
		}
		all.bytes -= one->bytes;
		ret->bytes += one->bytes;
		ret->records++;
	}
	free(all.items);
	return r < 0 ? r : failure;
}
