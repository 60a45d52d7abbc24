/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fanotify.h>
#include <unistd.h>

#include "util/mem.h"

#define LINK_SIZE 32
#define MASK      (FAN_OPEN | FAN_CLOSE_WRITE | FAN_CLOSE_NOWRITE)
/* Without FAN_UNLIMITED_QUEUE as many events wait as fs.fanotify.max_queued_events says: 16,384 by default. */
#define INIT_FLAGS  (FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK)
#define EVENT_FLAGS (O_RDONLY | O_LARGEFILE | O_CLOEXEC | O_NONBLOCK | O_NOATIME)

struct witness {
	int fd;
};

static int init(bool all, struct err *err)
{
	int fd = fanotify_init(INIT_FLAGS | (all ? FAN_UNLIMITED_QUEUE : 0), EVENT_FLAGS);

	if (fd >= 0)
		return fd;
	if (errno == EMFILE)
		return err_set(err, -EMFILE,
			"there are no more fanotify groups: raise fs.fanotify.max_user_groups");
	if (errno == ENOSYS)
		return err_set(err, -ENOSYS, "the kernel was built without fanotify");
	return err_set(err, -errno, "make a fanotify group: %m");
}

int witness_probe(struct err *err)
{
	scoped_fd int fd = init(false, err);

	return fd < 0 ? fd : 0;
}

int witness_open(bool all, struct witness **ret_witness, struct err *err)
{
	scoped(witness) struct witness *witness = new0(struct witness);

	witness->fd = init(all, err);
	if (witness->fd < 0)
		return witness->fd;
	*ret_witness = take(&witness);
	return 0;
}

void witness_free(struct witness *witness)
{
	if (!witness)
		return;
	scoped_close(&witness->fd);
	free(witness);
}

int witness_watch(struct witness *witness, int mount_fd, struct err *err)
{
	char link[LINK_SIZE];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", mount_fd);
	if (fanotify_mark(witness->fd, FAN_MARK_ADD | FAN_MARK_MOUNT, MASK, AT_FDCWD, link) < 0)
		return err_set(err, -errno, "watch a mount by fanotify: %m");
	return 0;
}

int witness_fd(const struct witness *witness)
{
	return witness->fd;
}

static struct witness_event take_event(const struct fanotify_event_metadata *e)
{
	return (struct witness_event){.opened = e->mask & FAN_OPEN,
		.closed = e->mask & (FAN_CLOSE_WRITE | FAN_CLOSE_NOWRITE),
		.closed_written = e->mask & FAN_CLOSE_WRITE,
		.overflow = e->mask & FAN_Q_OVERFLOW,
		.host_pid = e->pid,
		.fd = e->fd < 0 ? -1 : e->fd};
}

int witness_read(struct witness *witness, struct witness_event events[WITNESS_BATCH])
{
	struct fanotify_event_metadata buffer[WITNESS_BATCH], *e = buffer;
	ssize_t len = read(witness->fd, buffer, sizeof(buffer));
	int n = 0;

	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (; FAN_EVENT_OK(e, len) && n < WITNESS_BATCH; e = FAN_EVENT_NEXT(e, len))
		events[n++] = take_event(e);
	return n;
}
