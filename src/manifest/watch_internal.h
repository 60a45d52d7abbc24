/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a watch share. watch.h says how they work together. */
#ifndef MANIFEST_WATCH_INTERNAL_H
#define MANIFEST_WATCH_INTERNAL_H

#include "manifest/watch.h"
#include "manifest/watch_tree.h"
#include "util/map.h"

/* The last names from which something was moved. */
#define WATCH_MOVES 256
struct watch_move {
	uint32_t cookie;
	struct watch_entry *entry; /* NULL: none, or done */
};

struct watch {
	struct watch_config config;
	char *only;
	int root_fd, inotify_fd, timer_fd, poll_fd;
	int parent_wd; /* the folder that holds the root: tells when that goes */
	struct watch_tree tree;
	struct map *wds; /* to entries */
	size_t n_wds;
	struct watch_move moves[WATCH_MOVES];
	size_t next_move;
	struct watch_entry **queue; /* folders to be read; NULL: it went meanwhile */
	size_t n_queue, queue_room;
	unsigned round;
	int64_t now_ns;
	int64_t reread_ns;  /* when everything was last read because of what follows */
	bool has_overflown; /* since then */
	bool is_doubtful; /* since then: what is known does not fit what is there, and no events say why */
	bool has_unread; /* folders that were on their way when they were to be read */
	bool is_ending; /* what waits is told; mounts may be gone, so what is not found says nothing */
	bool may_be_gone, is_gone, is_moved; /* the root */
	/* The folder looked into last. */
	struct watch_entry *open_entry;
	int open_fd;
};

/* ---- watch_look.c: what is there ---- */

/* 0; -ENOENT: nothing is; -ESTALE: not to be known now, since its folder is not at its path; or -errno. */
int watch_look(struct watch *watch, struct watch_entry *entry, struct watch_seen *ret_seen);
int watch_look_at(int folder_fd, const char *name, struct watch_seen *ret_seen);
/* A folder that is known, by its descriptor; the watch's own until the next call. -ESTALE: it is not at its path just now. */
int watch_look_folder(struct watch *watch, struct watch_entry *folder);
/* A folder in one; parent NULL: the root. The caller's. */
int watch_look_open(struct watch *watch, struct watch_entry *parent, const char *name);
void watch_look_close(struct watch *watch);

/* ---- watch_scan.c: reads folders ---- */

enum watch_scan {
	WATCH_SCAN_FIRST, /* what is there is known, and not told */
	WATCH_SCAN_NEW,   /* it is new */
	WATCH_SCAN_AGAIN, /* what differs is noted */
};
/* Watches a folder and all below, and reads them. What cannot be watched is told; -errno where that is the root. */
int watch_scan(struct watch *watch, struct watch_entry *folder, enum watch_scan how);
/* Watches a file by itself: events of what is mounted on it do not come to its folder. */
void watch_scan_file(struct watch *watch, struct watch_entry *file);
/* Whether a folder that is known lies at a name, or another one, or none (or that is not to be known now). */
enum watch_lies {
	WATCH_LIES_NONE,
	WATCH_LIES_IT,
	WATCH_LIES_OTHER,
};
enum watch_lies watch_scan_lies_at(struct watch *watch, const struct watch_entry *folder,
	struct watch_entry *parent, const char *name);
bool watch_scan_is_same(struct watch *watch, const struct watch_entry *folder); /* at its own */
int watch_scan_number(
	struct watch *watch, int folder_fd); /* its watch; -ESTALE: none that is known; -errno */
/* Reads those that were not there when they were to be read, since a folder above had moved. */
void watch_scan_unread(struct watch *watch);
void watch_scan_give_up(struct watch *watch, struct watch_entry *entry); /* its watch */

/* ---- watch_event.c: what happens ---- */

int watch_event_read(struct watch *watch);
/* cookie: of a rename that led there, else 0. */
void watch_event_made(struct watch *watch, struct watch_entry *folder, const char *name,
	bool is_folder, uint32_t cookie);
void watch_event_gone(struct watch *watch, struct watch_entry *entry);
void watch_event_touched(struct watch *watch, struct watch_entry *entry, unsigned why);
/* A folder that was found at another place. */
void watch_event_moved_folder(struct watch *watch, struct watch_entry *source,
	struct watch_entry *parent, const char *name);

/* ---- watch_tell.c: what has settled ---- */

void watch_tell_due(struct watch *watch);
void watch_tell_gone(struct watch *watch, struct watch_entry *entry); /* now; it is removed */
void watch_tell_rename(struct watch *watch, const char *from, struct watch_entry *folder);
void watch_tell_unwatched(
	struct watch *watch, const struct watch_entry *folder, const char *reason);
void watch_tell_plain(struct watch *watch, enum watch_kind kind, const char *reason);
void watch_tell_end(struct watch *watch); /* what was asked for is not there any more */
/* Tells of a folder, and of those above, that wait to be told. false: one of them is not there. */
bool watch_tell_folder(struct watch *watch, struct watch_entry *folder);
/* It goes to where it cannot be told yet: it is told as gone, and will be told as new with all below. */
void watch_tell_anew(struct watch *watch, struct watch_entry *folder);

#endif
