/* SPDX-License-Identifier: Apache-2.0 */
/* What a watch knows of the names below its folder: memory only, no system calls. */
#ifndef MANIFEST_WATCH_TREE_H
#define MANIFEST_WATCH_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "manifest/settle.h"
#include "util/str.h"

/* What lies at a name; mode 0: nothing. */
struct watch_seen {
	uint64_t dev, ino;
	uint64_t links;
	mode_t mode;
	uint32_t uid, gid;
	int64_t size, mtime_ns;
	bool is_mount_root; /* something is mounted just here */
};

/* What happened to a name since it was last told of. */
enum {
	WATCH_WHY_MADE = 1 << 0, /* a new thing is there */
	WATCH_WHY_WRITE = 1 << 1,
	WATCH_WHY_COMPARE = 1 << 2, /* perhaps written: its size and time of change say so */
	WATCH_WHY_LOOK = 1 << 3,    /* perhaps its mode or owner */
};

#define WATCH_TAG_GOING 1

/* One name. */
struct watch_entry {
	struct watch_entry *parent, *first, *prev, *next; /* children in no order */
	struct watch_entry *name_next, *ino_next;         /* in the tables */
	char *name;
	uint32_t name_hash;
	int wd; /* its own watch: folders, and files that something is mounted on; -1 */
	struct watch_seen told; /* as it was last told */
	bool is_folder;
	bool is_gone;    /* not there any more, which is not told yet */
	bool is_moving;  /* of what is gone: it was renamed; where to is perhaps not known yet */
	bool is_open;    /* was written, and not closed by its writer since */
	bool is_writing; /* was told while its writer went on */
	bool is_telling;
	bool is_left_out;  /* of a folder: not all that is in it is known, and that was told */
	bool is_source;    /* the watch holds it as one that something was moved from, */
	bool is_queued;    /* as a folder to be read */
	bool is_unread;    /* of a folder: perhaps there are names in it that are not known */
	unsigned n_unsure; /* how often it was to be told, and it was not sure what lies there */
	unsigned why;
	unsigned round;           /* the last reading of its folder that met it */
	size_t n_gone;            /* children that are */
	struct settle_item item;  /* waits for itself, */
	struct settle_item going; /* and, tagged so, for what goes from it */
	/* A rename of a file that is not told yet: where what is here came from, and where what was told here went. */
	struct watch_entry *from, *to;
};

struct watch_table {
	struct watch_entry **slots;
	size_t n_slots, n;
};

struct watch_tree {
	struct watch_entry root; /* its name is "" */
	struct watch_table names, inos;
	size_t n;
	struct settle settle;
	void (*on_free)(void *arg, struct watch_entry *entry); /* its watch is to be given up */
	void *arg;
};

void watch_tree_init(struct watch_tree *tree);
void watch_tree_done(struct watch_tree *tree);

struct watch_entry *watch_tree_find(
	const struct watch_tree *tree, const struct watch_entry *parent, const char *name);
struct watch_entry *watch_tree_add(
	struct watch_tree *tree, struct watch_entry *parent, const char *name);
/* With all below. */
void watch_tree_remove(struct watch_tree *tree, struct watch_entry *entry);
/* To another name, with all below; nothing has that name. */
void watch_tree_move(struct watch_tree *tree, struct watch_entry *entry, struct watch_entry *parent,
	const char *name);

/* Notes what is told of it, and finds names by their inodes. */
void watch_tree_tell(
	struct watch_tree *tree, struct watch_entry *entry, const struct watch_seen *seen);
struct watch_entry *watch_tree_find_inode(
	const struct watch_tree *tree, const struct watch_seen *seen, struct watch_entry *behind);

/* It is not there any more, or is again. */
void watch_tree_set_gone(struct watch_tree *tree, struct watch_entry *entry, bool is_gone);

/* Adds the path below the root; nothing for the root. */
void watch_tree_add_path(const struct watch_entry *entry, struct str *out);
/* Whether it is folder, or below. */
bool watch_tree_is_in(const struct watch_entry *entry, const struct watch_entry *folder);
/* Told entries below a folder. */
size_t watch_tree_count(struct watch_entry *folder);
/* All below folder, each before what is in it: from folder itself on, until NULL. */
struct watch_entry *watch_tree_walk(const struct watch_entry *folder, struct watch_entry *e);

#endif
