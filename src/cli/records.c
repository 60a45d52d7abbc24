/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/elsewhere.h"
#include "util/mem.h"

#define RECORDS_MAX 1000000 /* listed at most */
#define PREFIX      "sb_"

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct record_entry *)a)->id, ((const struct record_entry *)b)->id);
}

static void read_entries(DIR *dir, struct record_list *list)
{
	struct dirent *e;
	size_t room = 0;

	while (list->n < RECORDS_MAX && (e = readdir(dir))) {
		struct stat st;

		if (!id_is_valid("sb", e->d_name) ||
			fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISDIR(st.st_mode))
			continue;
		if (list->n == room) {
			room = room ? room * 2 : 64;
			list->items = mem_grow(list->items, room, sizeof(struct record_entry));
		}
		memcpy(list->items[list->n].id, e->d_name, ID_SIZE);
		list->items[list->n++].owner = st.st_uid;
	}
}

int records_list(const struct cli *cli, struct record_list *ret_list, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/records", cli->state_dir);
	DIR *dir = opendir(path);

	*ret_list = (struct record_list){0};
	if (!dir && errno == ENOENT)
		return 0;
	if (!dir)
		return err_set(err, -errno, "open '%s': %m", path);
	read_entries(dir, ret_list);
	closedir(dir);
	if (ret_list->n)
		qsort(ret_list->items, ret_list->n, sizeof(struct record_entry), compare);
	return 0;
}

void records_list_done(struct record_list *list)
{
	free(list->items);
	*list = (struct record_list){0};
}

bool records_may_read(const struct cli *cli, const struct record_entry *entry)
{
	return geteuid() == 0 || entry->owner == geteuid();
}

static int find_last(const struct cli *cli, const struct record_list *list, char ret_id[ID_SIZE],
	struct err *err)
{
	for (size_t i = list->n; i-- > 0;)
		if (list->items[i].owner == cli->uid) {
			memcpy(ret_id, list->items[i].id, ID_SIZE);
			return 0;
		}
	return err_set(err, -ENOENT, "'last': you have no sandbox yet in %s", cli->state_dir);
}

static int find_prefix(const struct cli *cli, const struct record_list *list, const char *text,
	char ret_id[ID_SIZE], struct err *err)
{
	const struct record_entry *found = NULL;
	size_t len = strlen(text), n = 0, skip;

	skip = strncmp(text, PREFIX, strlen(PREFIX)) == 0 ? 0 : strlen(PREFIX);
	for (size_t i = 0; len && i < list->n; i++)
		if (strncmp(list->items[i].id + skip, text, len) == 0) {
			found = &list->items[i];
			n++;
		}
	if (n == 0)
		return err_set(err, -ENOENT,
			"there is no sandbox with the ID '%s' in %s: `cloche ps --all` lists them",
			text, cli->state_dir);
	if (n > 1)
		return err_set(err, -ENOTUNIQ,
			"'%s' stands for more than one sandbox (%zu): write more of the id", text,
			n);
	memcpy(ret_id, found->id, ID_SIZE);
	return 0;
}

/* A whole id needs no look at all the others, of which there may be thousands. */
static bool is_there(const struct cli *cli, const char *id)
{
	scoped_mem char *path = mem_printf("%s/records/%s", cli->state_dir, id);
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int records_resolve(const struct cli *cli, const char *text, char ret_id[ID_SIZE], struct err *err)
{
	struct record_list list;
	int r;

	if (cli->elsewhere)
		return cli->elsewhere->resolve(cli, text, ret_id, err);
	if (id_is_valid("sb", text) && is_there(cli, text)) {
		memcpy(ret_id, text, ID_SIZE);
		return 0;
	}
	r = records_list(cli, &list, err);
	if (r < 0)
		return r;
	if (strcmp(text, "last") == 0)
		r = find_last(cli, &list, ret_id, err);
	else
		r = find_prefix(cli, &list, text, ret_id, err);
	records_list_done(&list);
	return r;
}

void records_dir(const struct cli *cli, const char *id, struct str *out)
{
	str_reset(out);
	str_printf(out, "%s/records/%s", cli->state_dir, id);
}

int records_open(const struct cli *cli, const char *id, struct reader **ret_reader, struct err *err)
{
	scoped_str struct str dir = {0};
	struct stat st;

	records_dir(cli, id, &dir);
	if (stat(dir.p, &st) == 0 && geteuid() != 0 && st.st_uid != geteuid())
		return err_set(err, -EACCES,
			"the record of %s belongs to another user (uid %u): ask them, or use sudo",
			id, st.st_uid);
	return reader_open(dir.p, ret_reader, err);
}
