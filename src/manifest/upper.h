/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what overlayfs keeps in an upper folder: one entry and its marks (Linux overlayfs.rst, and fs/overlayfs of
 * 6.1 to 6.18, for an overlay mounted by the host: marks are trusted.overlay.*).
 *
 * Nothing inside a sandbox can make such a mark: trusted.* needs a capability of the host, and overlayfs refuses
 * to make a 0/0 device. Names, link targets and contents are the sandbox's own and may be anything. */
#ifndef MANIFEST_UPPER_H
#define MANIFEST_UPPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define UPPER_REDIRECT_MAX 4096 /* bytes of a redirect: a path */
#define UPPER_ORIGIN_MAX   160  /* bytes of a file handle: the kernel's are at most 128 */

struct upper_entry {
	struct stat st;
	bool whiteout;       /* the name is gone from below */
	bool opaque;         /* a folder through which nothing below shows */
	bool has_xwhiteouts; /* a folder that may hold whiteouts made of an empty file and a mark */
	bool metacopy;       /* a file without data: its data is below */
	char *redirect; /* where below, NULL: under the same name; "/a/b" from the root or "b" beside */
	unsigned char origin
		[UPPER_ORIGIN_MAX]; /* the file below it was copied from: handle type and bytes */
	size_t origin_len;          /* 0: not known */
};

/* One name in an open upper folder; in_xwhiteouts says whether that folder has_xwhiteouts. Never follows a
 * link, opens nothing but folders and regular files. -ENOENT where it is gone. Release with upper_done(). */
int upper_read(int dirfd, const char *name, bool in_xwhiteouts, struct upper_entry *ret_entry);
/* The marks of an open folder, such as the upper's own root. */
int upper_read_dir(int fd, struct upper_entry *ret_entry);
void upper_done(struct upper_entry *entry);

/* The handle of a file below, in the form of upper_entry.origin; name "": of dirfd itself. Its length, 0 where there is none. */
size_t upper_handle(int dirfd, const char *name, unsigned char ret[UPPER_ORIGIN_MAX]);
/* Whether the file of a handle still exists on the filesystem of fd. True where it cannot be told. */
bool upper_handle_is_alive(int fd, const unsigned char *handle, size_t len);

/* Whether an open file of an upper has no data of its own. In a living one a name may come to stand for such a file at any
 * moment, but no file that has data loses it. */
int upper_lacks_data(int fd);

/* Where the file that entry was copied up from, on the filesystem of fd, was copied up itself: takes that one's origin in
 * its place, or none where that one's is not known. */
bool upper_follow_origin(int fd, struct upper_entry *entry);

/* Gives a file without data (open for writing) the data of another and takes its marks off, so that it needs
 * nothing below; where that was stays known. Not while the overlay is mounted. */
int upper_make_whole(int fd, int data_fd);

#endif
