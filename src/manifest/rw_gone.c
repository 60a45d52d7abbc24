/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an rw scan: what was there before and was not met. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "manifest/rw_internal.h"
#include "util/mem.h"

static const char *moved_path(const struct rw_scan *scan, uint32_t record)
{
	unsigned long long number = record;

	return map_find(scan->moved, map_int_key(&number));
}

/* The closest folder above that was moved; SNAPSHOT_NONE where none was. */
static uint32_t moved_above(const struct rw_scan *scan, uint32_t record)
{
	const struct snapshot *before = scan->query->before;

	if (map_len(scan->moved) == 0)
		return SNAPSHOT_NONE;
	while (record != 0) {
		record = before->records[record].parent;
		if (moved_path(scan, record))
			return record;
	}
	return SNAPSHOT_NONE;
}

bool rw_gone_paths(const struct rw_scan *scan, uint32_t record, struct str *now, struct str *before)
{
	uint32_t above = moved_above(scan, record);
	scoped_str struct str old_above = {0};

	str_reset(now);
	str_reset(before);
	if (!snapshot_path(scan->query->before, record, before))
		return false;
	if (above == SNAPSHOT_NONE) {
		str_add(now, before->p, before->len);
		str_reset(before);
		return true;
	}
	(void)snapshot_path(scan->query->before, above, &old_above); /* it led here just now */
	str_puts(now, moved_path(scan, above));
	str_puts(now, before->p + old_above.len);
	return true;
}

/* ---- files that are there under another name ---- */

static struct slice key_of(const struct rw_identity *identity)
{
	return (struct slice){.p = (const char *)identity, .len = sizeof(*identity)};
}

/* Those that nobody met, by what they are. */
static struct map *map_gone(const struct rw_scan *scan)
{
	const struct snapshot *before = scan->query->before;
	struct map *gone = map_new();

	for (uint32_t i = 1; i < before->head->n_records; i++) {
		const struct snapshot_record *r = &before->records[i];
		struct rw_identity identity = {r->dev, r->ino, r->btime_ns};

		if (!scan->met[i] && !S_ISDIR(r->mode))
			*map_slot(gone, key_of(&identity)) = (void *)(uintptr_t)i;
	}
	return gone;
}

/* Inodes are used again: without a time of birth, the content has to say that it is the same file. */
static bool is_same_file(const struct change *c, const struct change_side *before, int64_t btime_ns)
{
	if ((before->mode ^ c->after.mode) & S_IFMT)
		return false;
	if (btime_ns != 0)
		return true;
	if (S_ISLNK(before->mode))
		return before->target && c->after.target &&
		       strcmp(before->target, c->after.target) == 0;
	return S_ISREG(before->mode) && before->size > 0 && before->sha256[0] &&
	       strcmp(before->sha256, c->after.sha256) == 0;
}

static void find_rename(struct rw_scan *scan, struct map *gone, const struct rw_new *found)
{
	const struct snapshot *before = scan->query->before;
	struct change *c = &scan->out->items[found->item];
	scoped_str struct str now = {0}, was = {0};
	struct change_side side = {0};
	uint32_t i = (uint32_t)(uintptr_t)map_find(gone, key_of(&found->identity));

	if (i == 0)
		return;
	rw_side_of(before, &before->records[i], &side);
	if (!is_same_file(c, &side, found->identity.btime_ns) ||
		!rw_gone_paths(scan, i, &now, &was)) {
		free(side.target);
		return;
	}
	(void)map_remove(gone, key_of(&found->identity));
	scan->met[i] = 1;
	c->before = side;
	c->kind = CHANGE_RENAMED;
	c->from = mem_dup(was.len > 0 ? was.p : now.p);
	if (S_ISREG(side.mode) && side.size == c->after.size && !side.sha256[0] &&
		side.mtime_ns != c->after.mtime_ns)
		c->flags |= CHANGE_UNSURE;
	(void)rw_file_differs(c);
}

/* ---- what is gone ---- */

/* Nothing can be said of what lies in a folder that could not be listed. */
static bool is_unknown(const struct rw_scan *scan, uint32_t record)
{
	for (uint32_t i = record; scan->n_unlisted > 0 && i != 0;) {
		i = scan->query->before->records[i].parent;
		for (size_t k = 0; k < scan->n_unlisted; k++)
			if (scan->unlisted[k] == i)
				return true;
	}
	return false;
}

static void add_gone(struct rw_scan *scan, uint32_t i)
{
	const struct snapshot *before = scan->query->before;
	scoped_str struct str now = {0}, was = {0};
	struct change *c;

	if (is_unknown(scan, i) || !rw_gone_paths(scan, i, &now, &was))
		return;
	c = changes_add(scan->out, CHANGE_REMOVED, str_take(&now));
	if (was.len > 0)
		c->from = str_take(&was);
	rw_side_of(before, &before->records[i], &c->before);
}

void rw_gone_list(struct rw_scan *scan, struct rw_new *news, size_t n_news)
{
	uint32_t n = scan->query->before->head->n_records;

	if (n_news > 0) {
		scoped(map) struct map *gone = map_gone(scan);

		for (size_t i = 0; map_len(gone) > 0 && i < n_news; i++)
			find_rename(scan, gone, &news[i]);
	}
	for (uint32_t i = 1; i < n; i++)
		if (!scan->met[i])
			add_gone(scan, i);
}
