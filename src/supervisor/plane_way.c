/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/plane_way.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/plane_socket.h"
#include "util/fdio.h"
#include "util/mem.h"

#define TURN 64 /* connections made at once, before others have theirs */

struct plane_way {
	struct supervisor *sup;
	int ours;
	struct loop_io *io;
};

static bool answer_one(struct plane_way *way)
{
	struct gateway_plane wish;
	scoped_fd int fd = -1;

	if (recv(way->ours, &wish, sizeof(wish), MSG_DONTWAIT) != sizeof(wish))
		return false; /* nothing more; that the gateway is gone is seen elsewhere */
	fd = plane_socket_connect(way->sup->state_dir, way->sup->id);
	wish.error = fd < 0 ? -fd : 0;
	/* A gateway that takes no answers has its dial run out of time. */
	(void)fdio_send(way->ours, &wish, sizeof(wish), &fd, fd < 0 ? 0 : 1);
	return true;
}

static void on_wish(void *ctx, unsigned what)
{
	struct plane_way *way = ctx;
	int n = 0;

	(void)what;
	while (n < TURN && answer_one(way))
		n++;
	if (n == 0)
		loop_io_free(take(&way->io));
}

int plane_way_open(
	struct supervisor *sup, struct plane_way **ret_way, int *ret_socket, struct err *err)
{
	struct plane_way *way;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
		fdio_set_nonblock(pair[0], true) < 0)
		return err_set(err, -errno, "make a socket for the gateway: %m");
	way = new0(struct plane_way);
	*way = (struct plane_way){.sup = sup, .ours = pair[0]};
	way->io = loop_io_new(sup->loop, way->ours, LOOP_READ, on_wish, way);
	*ret_way = way;
	*ret_socket = pair[1];
	return 0;
}

void plane_way_free(struct plane_way *way)
{
	if (!way)
		return;
	loop_io_free(way->io);
	close(way->ours);
	free(way);
}
