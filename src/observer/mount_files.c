/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/mount_files.h"

#include <stdlib.h>
#include <string.h>

#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"

#define ROUNDS_KEPT 3 /* an event of the witness is read in the round of its record, or the next */

struct mount_files {
	struct map *files;                     /* by the address: struct mount_file */
	struct map *inodes;                    /* struct mount_inode */
	struct mount_inode *idle, **last_idle; /* oldest first */
	uint64_t round;
};

static struct slice key_of(const uint64_t *number)
{
	return (struct slice){.p = (const char *)number, .len = sizeof(*number)};
}

struct mount_files *mount_files_new(void)
{
	struct mount_files *f = new0(struct mount_files);

	f->files = map_new();
	f->inodes = map_new();
	f->last_idle = &f->idle;
	return f;
}

void mount_files_free(struct mount_files *f)
{
	struct slice key;
	void *value;

	if (!f)
		return;
	for (size_t i = 0; map_next(f->files, &i, &key, &value);) {
		free(((struct mount_file *)value)->path);
		free(value);
	}
	for (size_t i = 0; map_next(f->inodes, &i, &key, &value);)
		free(value);
	map_free(f->files);
	map_free(f->inodes);
	free(f);
}

struct mount_inode *mount_files_inode(const struct mount_files *f, uint64_t number)
{
	return map_find(f->inodes, key_of(&number));
}

struct mount_file *mount_files_find(const struct mount_files *f, uint64_t file)
{
	return map_find(f->files, key_of(&file));
}

size_t mount_files_count(const struct mount_files *f)
{
	return map_len(f->files);
}

struct mount_file *mount_files_first(const struct mount_files *f)
{
	struct slice key;
	void *value;
	size_t i = 0;

	return map_next(f->files, &i, &key, &value) ? value : NULL;
}

static struct mount_inode *inode_at(struct mount_files *f, uint64_t number)
{
	void **slot = map_slot(f->inodes, key_of(&number));

	if (!*slot) {
		struct mount_inode *inode = new0(struct mount_inode);

		inode->number = number;
		*slot = inode;
	}
	return *slot;
}

/* May go once nothing is open and some rounds have passed. */
static void set_idle(struct mount_files *f, struct mount_inode *inode)
{
	if (inode->is_idle || inode->files)
		return;
	inode->is_idle = true;
	inode->next_idle = NULL;
	*f->last_idle = inode;
	f->last_idle = &inode->next_idle;
}

void mount_files_opener(struct mount_files *f, uint64_t number, pid_t host_pid)
{
	struct mount_inode *inode = inode_at(f, number);

	if (f->round - inode->round >= ROUNDS_KEPT)
		inode->n_openers = 0;
	inode->round = f->round;
	if (!mount_inode_has_opener(inode, host_pid))
		inode->openers[inode->n_openers++ % MOUNT_FILES_OPENERS] = host_pid;
	set_idle(f, inode);
}

bool mount_inode_has_opener(const struct mount_inode *inode, pid_t host_pid)
{
	if (inode->n_openers > MOUNT_FILES_OPENERS)
		return true;
	for (size_t i = 0; i < inode->n_openers; i++)
		if (inode->openers[i] == host_pid)
			return true;
	return false;
}

struct mount_file *mount_files_add(
	struct mount_files *f, uint64_t number, const struct mount_file *one, struct slice path)
{
	struct mount_file *file = mem_copy(one, sizeof(*one));
	struct mount_inode *inode = inode_at(f, number);

	file->path = mem_copy(path.p, path.len);
	file->inode = inode;
	file->prev = NULL;
	file->next = inode->files;
	if (file->next)
		file->next->prev = file;
	inode->files = file;
	*map_slot(f->files, key_of(&file->file)) = file;
	return file;
}

void mount_files_remove(struct mount_files *f, struct mount_file *file)
{
	struct mount_inode *inode = file->inode;

	(void)map_remove(f->files, key_of(&file->file));
	if (file->prev)
		file->prev->next = file->next;
	else
		inode->files = file->next;
	if (file->next)
		file->next->prev = file->prev;
	set_idle(f, inode);
	free(file->path);
	free(file);
}

/* What lies at or below one place is at or below the other now. */
static bool move(struct mount_file *file, struct slice from, struct slice to)
{
	const struct slice path = {.p = file->path, .len = strlen(file->path)};
	char *moved;

	if (file->is_deleted || !path_is_beneath(path, from))
		return false;
	moved = mem_zero(to.len + path.len - from.len + 1, 1);
	memcpy(moved, to.p, to.len);
	memcpy(moved + to.len, path.p + from.len, path.len - from.len);
	free(file->path);
	file->path = moved;
	return true;
}

void mount_files_renamed(
	struct mount_files *f, struct slice from, struct slice to, bool is_exchange)
{
	struct slice key;
	void *value;

	for (size_t i = 0; map_next(f->files, &i, &key, &value);) {
		struct mount_file *file = value;

		if (move(file, from, to))
			continue;
		if (is_exchange)
			(void)move(file, to, from);
		else if (slice_is(to, file->path))
			file->is_deleted = true; /* its name is another's now */
	}
}

void mount_files_deleted(struct mount_files *f, struct slice path)
{
	struct slice key;
	void *value;

	for (size_t i = 0; map_next(f->files, &i, &key, &value);)
		if (slice_is(path, ((struct mount_file *)value)->path))
			((struct mount_file *)value)->is_deleted = true;
}

void mount_files_turn(struct mount_files *f)
{
	struct mount_inode *inode;

	f->round++;
	while ((inode = f->idle) && f->round - inode->round >= ROUNDS_KEPT && !inode->is_closing) {
		f->idle = inode->next_idle;
		if (!f->idle)
			f->last_idle = &f->idle;
		inode->is_idle = false;
		if (inode->files)
			continue; /* opened again meanwhile */
		(void)map_remove(f->inodes, key_of(&inode->number));
		free(inode);
	}
}
