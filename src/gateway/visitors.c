/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/visitors.h"

#include <errno.h>
#include <unistd.h>

#include "gateway/gateway_internal.h"
#include "gateway/published.h"
#include "util/fdio.h"
#include "util/mem.h"

#define AT_ONCE 64 /* others have their turn */

struct visitors {
	struct gateway *gw;
	struct poller_io io;
};

/* False: there is none any more. One whose descriptor found no room is lost, which its other side sees. */
static bool take_one(struct visitors *visitors)
{
	struct gateway_visit asked;
	size_t n_fds = 0;
	int fd = -1;
	ssize_t n = fdio_recv(GATEWAY_FD_VISITS, &asked, sizeof(asked), &fd, 1, &n_fds);

	if (n < 0)
		return n == -EMSGSIZE;
	if (n == 0)
		poller_remove(visitors->gw->poller, &visitors->io); /* the supervisor is gone */
	if (n == (ssize_t)sizeof(asked) && n_fds == 1)
		published_visit(visitors->gw->published, fd, &asked);
	else if (n_fds == 1)
		close(fd);
	return n > 0;
}

static void on_visitor(void *ctx)
{
	for (int i = 0; i < AT_ONCE && take_one(ctx); i++)
		;
}

int visitors_open(struct gateway *gw, struct visitors **ret_visitors, struct err *err)
{
	struct visitors *visitors = new0(struct visitors);
	int r;

	visitors->gw = gw;
	visitors->io.fd = -1;
	r = poller_add_level(gw->poller, &visitors->io, GATEWAY_FD_VISITS, on_visitor, visitors);
	if (r < 0) {
		free(visitors);
		return err_set(err, r, "listen for visitors: %m");
	}
	*ret_visitors = visitors;
	return 0;
}

void visitors_free(struct visitors *visitors)
{
	if (!visitors)
		return;
	poller_remove(visitors->gw->poller, &visitors->io);
	free(visitors);
}
