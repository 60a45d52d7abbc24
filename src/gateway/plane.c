/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/plane.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/dial.h"
#include "gateway/gateway_internal.h"
#include "proto/gateway_wire.h"
#include "util/fdio.h"
#include "util/mem.h"

struct plane {
	struct gateway *gw;
	struct poller_io io;
	struct dial *first; /* those that wait */
	uint64_t last_id;
};

static struct dial *find(struct plane *plane, uint64_t id)
{
	struct dial *dial = plane->first;

	while (dial && dial->plane_id != id)
		dial = dial->plane_next;
	return dial;
}

void plane_cancel(struct dial *dial)
{
	if (!dial->plane_at)
		return;
	*dial->plane_at = dial->plane_next;
	if (dial->plane_next)
		dial->plane_next->plane_at = dial->plane_at;
	dial->plane_at = NULL;
}

static void on_answer(void *ctx)
{
	struct plane *plane = ctx;
	struct gateway_plane answer = {0};
	size_t n_fds = 0;
	int fd = -1;
	ssize_t n = fdio_recv(GATEWAY_FD_PLANE, &answer, sizeof(answer), &fd, 1, &n_fds);
	bool is_lost = n == -EMSGSIZE; /* there was no descriptor left for it; the rest came */
	struct dial *dial;

	if (n == 0 || (n < 0 && !is_lost)) {
		poller_remove(plane->gw->poller, &plane->io); /* who waits runs out of time */
		return;
	}
	dial = find(plane, answer.id);
	if (dial) {
		plane_cancel(dial);
		dial_adopt(dial, n_fds == 1 ? fd : answer.error ? -answer.error : -EMFILE);
	} else if (n_fds == 1) {
		close(fd); /* its dial was given up */
	}
}

int plane_open(struct gateway *gw, struct plane **ret_plane, struct err *err)
{
	struct plane *plane = new0(struct plane);
	int r;

	plane->gw = gw;
	plane->io.fd = -1;
	r = poller_add_level(gw->poller, &plane->io, GATEWAY_FD_PLANE, on_answer, plane);
	if (r < 0) {
		free(plane);
		return err_set(err, r, "watch the way to the control plane: %m");
	}
	*ret_plane = plane;
	return 0;
}

void plane_free(struct plane *plane)
{
	if (!plane)
		return;
	poller_remove(plane->gw->poller, &plane->io);
	free(plane);
}

int plane_ask(struct plane *plane, struct dial *dial)
{
	struct gateway_plane wish = {.id = ++plane->last_id};

	if (send(GATEWAY_FD_PLANE, &wish, sizeof(wish), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return errno == EAGAIN ? -ECONNREFUSED : -errno;
	dial->plane_id = wish.id;
	dial->plane_next = plane->first;
	dial->plane_at = &plane->first;
	if (dial->plane_next)
		dial->plane_next->plane_at = &dial->plane_next;
	plane->first = dial;
	return 0;
}
