/* SPDX-License-Identifier: Apache-2.0 */
/* Whole reads and writes, and descriptors over Unix sockets. Everything returns 0 or a count, or a negative errno. */
#ifndef UTIL_FDIO_H
#define UTIL_FDIO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "util/str.h"

int fdio_write_all(int fd, const void *p, size_t len); /* blocking descriptors only */
ssize_t fdio_read_full(
	int fd, void *p, size_t len); /* bytes read: fewer than len only at the end */
/* Adds all of a descriptor or file to out. -EFBIG past max bytes. */
int fdio_read_all(int fd, size_t max, struct str *out);
int fdio_read_file(int dirfd, const char *path, size_t max, struct str *out);
/* Writes one string to an existing kernel file (cgroup, sysctl) in one write. */
int fdio_put(int dirfd, const char *path, const char *text);
/* Replaces a file at once: a temporary one beside it, synced, renamed over it. Mode as given. */
int fdio_replace(int dirfd, const char *path, const void *p, size_t len, mode_t mode);

/* Whether the file of that name is the one that is open: a lock holds nothing once its file was removed or moved. */
bool fdio_is_at(int fd, int dirfd, const char *path);

int fdio_set_nonblock(int fd, bool on);
/* Where 0, 1 or 2 is not open, puts something there that refuses reading or writing just so: else the next
 * descriptor that is opened would be taken for it. For the first line of main(). */
int fdio_fill_standard(void);
/* Makes room for descriptors below n, as far as the limit goes. For a process that has one thread yet: in one with
 * several, the kernel waits for every core, some 10 ms, whenever the table of descriptors has to grow. */
void fdio_reserve(int n);

/* One message with up to FDIO_MAX_FDS descriptors over a Unix socket. */
#define FDIO_MAX_FDS 16
ssize_t fdio_send(int sock, const void *p, size_t len, const int *fds, size_t n_fds);
/* Received descriptors are close-on-exec and the caller's; more than max of them are closed and give -EMSGSIZE. */
ssize_t fdio_recv(int sock, void *p, size_t len, int *ret_fds, size_t max_fds, size_t *ret_n_fds);

#endif
