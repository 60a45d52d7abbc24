/* SPDX-License-Identifier: Apache-2.0 */
/* The files of mounts that are open, by the kernel's numbers for them, with what is to be told when they are
 * closed; and who was seen to open which inode lately, so that an open that nobody told stands out. Pure. */
#ifndef OBSERVER_MOUNT_FILES_H
#define OBSERVER_MOUNT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "observer/wire.h"
#include "util/scoped.h"
#include "util/slice.h"

#define MOUNT_FILES_OPENERS 8 /* processes kept of those that opened an inode lately */

struct mount_inode;

/* One open file: what open(2) made, whoever has descriptors of it. */
struct mount_file {
	struct mount_file *next, *prev; /* of the same inode */
	struct mount_inode *inode;
	uint64_t file, opened_ns;
	char *path; /* where it is, as far as renames are known */
	char exec[WIRE_ID_SIZE];
	const char *access; /* a constant */
	int64_t pid, task;
	bool internal, is_deleted;
	unsigned n_gone; /* looks that did not find it */
};

struct mount_inode {
	uint64_t number;
	struct mount_file *files;
	pid_t openers[MOUNT_FILES_OPENERS]; /* as the host numbers them */
	size_t n_openers; /* all of them; more than are kept: anybody may have been one */
	uint64_t round;   /* when the last came */
	struct mount_inode *next_idle;
	bool is_idle;    /* in the list of those that may go */
	bool is_closing; /* to be looked at: one of its files was closed */
	unsigned n_looks;
};

struct mount_files;

struct mount_files *mount_files_new(void);
void mount_files_free(struct mount_files *files);
SCOPED_TYPE(mount_files)

struct mount_inode *mount_files_inode(
	const struct mount_files *files, uint64_t number);                           /* or NULL */
struct mount_file *mount_files_find(const struct mount_files *files, uint64_t file); /* or NULL */
size_t mount_files_count(const struct mount_files *files);
/* Any of them, or NULL where there is none. */
struct mount_file *mount_files_first(const struct mount_files *files);

/* A process was seen to open it. */
void mount_files_opener(struct mount_files *files, uint64_t inode, pid_t host_pid);
bool mount_inode_has_opener(const struct mount_inode *inode, pid_t host_pid);

/* Takes a copy of what one points at; its address must not be in use. */
struct mount_file *mount_files_add(
	struct mount_files *files, uint64_t inode, const struct mount_file *one, struct slice path);
void mount_files_remove(struct mount_files *files, struct mount_file *file);

/* Names that changed. */
void mount_files_renamed(
	struct mount_files *files, struct slice from, struct slice to, bool is_exchange);
void mount_files_deleted(struct mount_files *files, struct slice path);

/* The next round begins: forgets inodes of which nothing is open and which nobody opened for some rounds. */
void mount_files_turn(struct mount_files *files);

#endif
