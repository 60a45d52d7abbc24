/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a scan share. scan.h says how they work together. */
#ifndef MANIFEST_MANIFEST_INTERNAL_H
#define MANIFEST_MANIFEST_INTERNAL_H

#include "manifest/changes.h"
#include "manifest/stack.h"
#include "manifest/upper.h"
#include "util/map.h"

/* A path below that no longer shows at its place. */
struct scan_hidden {
	char *path, *base; /* as the sandbox sees it; as it lies below */
	unsigned flags;    /* CHANGE_REPLACED, CHANGE_QUIET, CHANGE_UNSEEN */
};

/* The file below that an added one was copied up from. */
struct scan_origin {
	size_t item;
	size_t len;
	unsigned char handle[UPPER_ORIGIN_MAX];
};

struct scan {
	const struct change_set *set;
	const struct change_layer *layer;
	struct changes *out;
	bool count_only;
	struct stack stack;
	int lower_fd;
	int64_t budget; /* bytes that may still be hashed */
	struct scan_hidden *hidden;
	size_t n_hidden;
	struct map *moved; /* base paths of folders that were renamed: where they are now */
	bool only_moves;   /* the first round, which fills that and nothing else */
	struct scan_origin *origins;
	size_t n_origins;
};

/* scan.c */
char *scan_join(const char *folder, const char *name); /* "" and "." are no folder */
size_t scan_skipped_len(
	const char *path); /* how much of path is a skipped folder, 0 where none is */
struct change *scan_add(struct scan *scan, enum change_kind kind, char *path);
/* The content of what is listed could not be read; */
void scan_note_unread(struct scan *scan, const char *path, int r);
/* or what is there at all, or where it came from. */
void scan_note_unseen(struct scan *scan, const char *path, int r);
bool scan_is_gone(
	int r); /* what was listed is not there any more as what it was; any other error says nothing */
/* Whether a folder below may not be the one that the sandbox saw. merged: the sandbox's own over it, NULL where it does not
 * show through that. is_around_unseen: whether that holds for the folder it lies in. */
bool scan_is_unseen(
	const struct scan *scan, int lfd, const struct stack_folder *merged, bool is_around_unseen);
/* Reads all names of a folder but "." and "..", then calls on_name for each until one fails. */
int scan_each_name(int dirfd, int (*on_name)(void *data, const char *name), void *data);

/* A folder of the upper being visited. */
struct scan_frame {
	const struct stack_folder *up;
	int lfd;          /* the one below that belongs to it, or -1 */
	const char *path; /* "" at the top */
	const char *base; /* path of the one below, NULL without */
	bool merged;      /* the one below shows through */
	bool is_unseen;   /* the one below may not be what the sandbox saw there */
	int depth;
};

/* One name in it. */
struct scan_entry {
	const char *name;
	char *path, *base; /* base: the same name below, NULL where there is none */
	struct stack_entry at;
	struct stat low; /* where base is set */
};

/* scan_entry.c: what hides, what is not a folder. */
/* Notes that what is below at an entry (or at `below` under it) does not show there any more. */
void scan_entry_hide(
	struct scan *scan, const struct scan_entry *e, const char *below, unsigned flags);
/* Where below a redirect leads after the renames that were applied: *ret NULL where nothing of that type (S_IFREG, S_IFDIR)
 * is there. */
int scan_entry_follow(struct scan *scan, const struct scan_frame *f, const char *redirect,
	mode_t type, char **ret);
/* What differs beside the content: sets flags, and says whether anything does. */
bool scan_entry_differs(struct scan *scan, struct change *c);
/* Lists what became of a name that is no folder above. */
void scan_entry_file(struct scan *scan, const struct scan_frame *f, const struct scan_entry *e);

/* scan_folder.c: notes how a folder came to be at its path. Returns the path below that belongs to it, or NULL; outside:
 * it lies above the folder that was asked for, and is not listed. */
char *scan_folder_place(struct scan *scan, const struct scan_frame *f, struct scan_entry *e,
	bool outside, bool *ret_merged);

/* A file to look at: where it is, and what it is called in what is said of it. */
struct scan_file {
	int dirfd;
	const char *name, *path;
	const struct stat *st;
	size_t layer;    /* the number of the upper's it is in: stack.h */
	bool needs_data; /* of an upper: -ENODATA where what is there now has none */
};

/* Where the data of a file without any lies. */
struct scan_data {
	int root_fd;
	const char *path; /* below it */
};

/* scan_side.c: fills one side. hash: read the file. What cannot be read is noted, not fatal. */
void scan_side_read(
	struct scan *scan, const struct scan_file *file, bool hash, struct change_side *side);
/* The same for a regular file that is open, from whatever place. */
void scan_side_read_open(
	struct scan *scan, int fd, const char *path, bool hash, struct change_side *side);
/* The upper's side of a file without data: everything but the data is the upper's. *ret_ctime_ns is the data's file's. */
void scan_side_read_data(struct scan *scan, const struct scan_data *data, const char *path,
	bool hash, struct change_side *side, int64_t *ret_ctime_ns);
/* CHANGE_OWNER where the upper's owner is not what the one below is seen as. */
unsigned scan_side_compare_owner(
	const struct scan *scan, const struct change_side *before, const struct change_side *after);
/* The same in another sandbox with these files: id_base is the first of its host ids. */
void scan_side_state(const struct change *change, uint32_t id_base, char ret[DIGEST_HEX_SIZE]);

/* scan_hidden.c: lists what is hidden, and finds renames among it. */
void scan_hidden_list(struct scan *scan);

#endif
