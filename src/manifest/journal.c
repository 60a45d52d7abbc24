/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a change set's applies. */
#include "manifest/journal.h"

#include <stdlib.h>
#include <string.h>

#include "manifest/journal_internal.h"
#include "util/clock.h"
#include "util/mem.h"

struct paths {
	struct journal_entry *last[2]; /* what was put there, what was taken away */
	char *content;
	bool is_made;
};

static void make_key(struct str *key, int n, struct slice path)
{
	str_printf(key, "%d/", n);
	str_add(key, path.p, path.len);
}

static struct paths *find_paths(const struct journal *journal, int n, struct slice path)
{
	scoped_str struct str key = {0};

	make_key(&key, n, path);
	return map_find(journal->paths, str_slice(&key));
}

/* What was put somewhere is gone once it was taken away, and the other way round. Both hold only where one apply or discard
 * did both: the line of what was taken away stands right before the other then. */
static void drop_superseded(const struct journal *journal, struct paths *p, bool removed)
{
	if (!removed && journal->newest == p)
		return;
	free(p->last[!removed]);
	p->last[!removed] = NULL;
}

void journal_remember(
	struct journal *journal, int n, struct slice path, const struct journal_entry *entry)
{
	scoped_str struct str key = {0};
	struct paths *p;
	void **slot;

	make_key(&key, n, path);
	slot = map_slot(journal->paths, str_slice(&key));
	if (!*slot)
		*slot = new0(struct paths);
	p = *slot;
	if (entry->sha256[0]) {
		free(p->content);
		p->content = mem_dup(entry->sha256);
	}
	p->is_made |= entry->act == JOURNAL_MADE;
	if (entry->act == JOURNAL_SEEN || entry->act == JOURNAL_MADE)
		return;
	drop_superseded(journal, p, entry->removed);
	if (!p->last[entry->removed])
		p->last[entry->removed] = new0(struct journal_entry);
	*p->last[entry->removed] = *entry;
	journal->newest = p;
}

struct journal_mount *journal_mount(struct journal *journal, int n)
{
	struct journal_mount *m = n >= 0 && n < JOURNAL_MOUNTS_MAX ? &journal->mounts[n] : NULL;

	if (m && !m->renames) {
		m->renames = renames_new();
		m->temporaries = map_new();
		m->touched = map_new();
	}
	return m;
}

static const struct journal_mount *find_known(const struct journal *journal, int n)
{
	return n >= 0 && n < JOURNAL_MOUNTS_MAX && journal->mounts[n].renames ? &journal->mounts[n]
	                                                                      : NULL;
}

void journal_remember_rename(struct journal *journal, int n, const struct rename *rename)
{
	struct journal_mount *m = journal_mount(journal, n);

	if (m)
		renames_add(m->renames, rename);
}

void journal_forget_rename(struct journal *journal, int n, const char *from, const char *to)
{
	struct journal_mount *m = journal_mount(journal, n);
	const struct rename *last = m ? renames_last(m->renames) : NULL;

	if (last && strcmp(last->from, from) == 0 && strcmp(last->to, to) == 0)
		renames_drop_last(m->renames);
}

void journal_remember_begun(struct journal *journal, int n)
{
	struct journal_mount *m = journal_mount(journal, n);

	if (m)
		m->has_begun = true;
}

void journal_remember_temporary(struct journal *journal, int n, struct slice path)
{
	struct journal_mount *m = journal_mount(journal, n);

	if (m)
		*map_slot(m->temporaries, path) = m;
}

void journal_remember_touched(struct journal *journal, int n, uint64_t inode, int64_t ctime_ns)
{
	struct journal_mount *m = journal_mount(journal, n);
	unsigned long long key = inode;

	if (m)
		*map_slot(m->touched, map_int_key(&key)) = (void *)(intptr_t)ctime_ns;
}

bool journal_is_touched(const struct journal *journal, int n, const struct stat *folder)
{
	const struct journal_mount *m = find_known(journal, n);
	unsigned long long key = folder->st_ino;

	return m && (intptr_t)map_find(m->touched, map_int_key(&key)) == clock_ns(folder->st_ctim);
}

void journal_forget_temporaries(struct journal *journal, int n)
{
	struct journal_mount *m = journal_mount(journal, n);

	if (!m)
		return;
	map_free(m->temporaries);
	m->temporaries = map_new();
}

void journal_free(struct journal *journal)
{
	struct slice key;
	void *value;

	if (!journal)
		return;
	for (size_t i = 0; journal->paths && map_next(journal->paths, &i, &key, &value);) {
		struct paths *p = value;

		free(p->last[0]);
		free(p->last[1]);
		free(p->content);
		free(p);
	}
	map_free(journal->paths);
	for (size_t i = 0; i < JOURNAL_MOUNTS_MAX; i++) {
		renames_free(journal->mounts[i].renames);
		map_free(journal->mounts[i].temporaries);
		map_free(journal->mounts[i].touched);
	}
	scoped_close(&journal->fd);
	str_done(&journal->owed);
	free(journal->dir);
	free(journal);
}

const struct journal_entry *journal_find(
	const struct journal *journal, int n, struct slice path, bool removed)
{
	const struct paths *p = find_paths(journal, n, path);

	return p ? p->last[removed] : NULL;
}

bool journal_is_made(const struct journal *journal, int n, struct slice path)
{
	const struct paths *p = find_paths(journal, n, path);

	return p && p->is_made && !p->last[false];
}

const char *journal_find_content(const struct journal *journal, int n, struct slice path)
{
	const struct paths *p = find_paths(journal, n, path);

	return p ? p->content : NULL;
}

char *journal_now(const struct journal *journal, int n, const char *path)
{
	const struct journal_mount *m = find_known(journal, n);

	return m ? renames_now(m->renames, path) : mem_dup(path);
}

char *journal_before(const struct journal *journal, int n, const char *path)
{
	const struct journal_mount *m = find_known(journal, n);

	return m ? renames_before(m->renames, path) : mem_dup(path);
}

const char *journal_next_parked(const struct journal *journal, int n, size_t *i)
{
	const struct journal_mount *m = find_known(journal, n);

	return m ? renames_next_parked(m->renames, i) : NULL;
}

const struct rename *journal_last_rename(const struct journal *journal, int n)
{
	const struct journal_mount *m = find_known(journal, n);

	return m ? renames_last(m->renames) : NULL;
}

bool journal_has_begun(const struct journal *journal, int n)
{
	const struct journal_mount *m = find_known(journal, n);

	return m && m->has_begun;
}

bool journal_next_temporary(const struct journal *journal, int n, size_t *i, struct slice *ret_path)
{
	const struct journal_mount *m = find_known(journal, n);
	void *value;

	return m && map_next(m->temporaries, i, ret_path, &value);
}

bool journal_is_temporary(const struct journal *journal, int n, struct slice path)
{
	const struct journal_mount *m = find_known(journal, n);

	return m && map_find(m->temporaries, path);
}
