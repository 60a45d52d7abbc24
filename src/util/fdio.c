/* SPDX-License-Identifier: Apache-2.0 */
#include "util/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/mem.h"
#include "util/scoped.h"

#define READ_STEP 65536

/* A descriptor that came from elsewhere may be non-blocking: whoever shares it has a say in that. */
static int wait_writable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	while (poll(&p, 1, -1) < 0)
		if (errno != EINTR)
			return -errno;
	errno = EAGAIN;
	return 0;
}

int fdio_write_all(int fd, const void *p, size_t len)
{
	const char *at = p;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && (errno == EINTR || (errno == EAGAIN && wait_writable(fd) == 0)))
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t fdio_read_full(int fd, void *p, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (char *)p + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int fdio_read_all(int fd, size_t max, struct str *out)
{
	size_t start = out->len;

	for (;;) {
		ssize_t n;

		str_reserve(out, READ_STEP);
		n = fdio_read_full(fd, out->p + out->len, READ_STEP);
		if (n < 0)
			return (int)n;
		out->len += (size_t)n;
		out->p[out->len] = '\0';
		if (out->len - start > max)
			return -EFBIG;
		if (n < READ_STEP)
			return 0;
	}
}

int fdio_read_file(int dirfd, const char *path, size_t max, struct str *out)
{
	scoped_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fdio_read_all(fd, max, out);
}

int fdio_put(int dirfd, const char *path, const char *text)
{
	scoped_fd int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	return n < 0 ? -errno : 0;
}

int fdio_replace(int dirfd, const char *path, const void *p, size_t len, mode_t mode)
{
	scoped_mem char *tmp = mem_printf("%s.tmp%d", path, (int)getpid());
	scoped_fd int fd =
		openat(dirfd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	int r;

	if (fd < 0)
		return -errno;
	r = fdio_write_all(fd, p, len);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dirfd, tmp, dirfd, path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dirfd, tmp, 0); /* the error that led here is the one to tell */
	return r;
}

int fdio_fill_standard(void)
{
	for (int fd = 0; fd < 3; fd++) {
		/* The lowest that is free: this one. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0)
			return -errno;
	}
	return 0;
}

void fdio_reserve(int n)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, n - 1);

	if (fd >= 0)
		close(fd);
}

bool fdio_is_at(int fd, int dirfd, const char *path)
{
	struct stat ours, there;

	return fstat(fd, &ours) == 0 && fstatat(dirfd, path, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

int fdio_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

ssize_t fdio_send(int sock, const void *p, size_t len, const int *fds, size_t n_fds)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * FDIO_MAX_FDS)];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = (void *)p, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (n_fds > FDIO_MAX_FDS)
		return -EMSGSIZE;
	if (n_fds > 0) {
		struct cmsghdr *c = &control.align;

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
	}
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static size_t take_fds(struct msghdr *msg, int *ret_fds, size_t max)
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (n < max)
				ret_fds[n] = fd;
			else
				close(fd);
			n++;
		}
	}
	return n;
}

ssize_t fdio_recv(int sock, void *p, size_t len, int *ret_fds, size_t max_fds, size_t *ret_n_fds)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * FDIO_MAX_FDS)];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = p, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf)};
	ssize_t n;
	size_t got;

	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	got = take_fds(&msg, ret_fds, max_fds);
	if (got <= max_fds && !(msg.msg_flags & MSG_CTRUNC)) {
		*ret_n_fds = got;
		return n;
	}
	for (size_t i = 0; i < got && i < max_fds; i++)
		close(ret_fds[i]);
	*ret_n_fds = 0;
	return -EMSGSIZE;
}
