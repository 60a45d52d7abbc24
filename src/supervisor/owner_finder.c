/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/owner_finder.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/mem.h"

struct owner_finder {
	int ours;
	struct netcatch_diag diag;
	pthread_t thread;
};

/* Whatever is asked is about sockets of this sandbox, and is told to who governs them. */
static void *serve(void *arg)
{
	struct owner_finder *finder = arg;
	struct netcatch_found answer;

	while (recv(finder->ours, &answer.key, sizeof(answer.key), 0) == sizeof(answer.key)) {
		netcatch_diag_find(&finder->diag, &answer.key, &answer.owner);
		if (send(finder->ours, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			break;
	}
	return NULL;
}

int owner_finder_start(const struct netcatch *netcatch, struct owner_finder **ret_finder,
	int *ret_socket, struct err *err)
{
	struct owner_finder *finder;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, -errno, "make a socket for the gateway: %m");
	finder = new0(struct owner_finder);
	finder->ours = pair[0];
	netcatch_diag_init(netcatch, &finder->diag);
	r = -pthread_create(&finder->thread, NULL, serve, finder);
	if (r < 0) {
		(void)close(pair[0]);
		(void)close(pair[1]);
		free(finder);
		return err_set(err, r, "start a thread: %m");
	}
	*ret_finder = finder;
	*ret_socket = pair[1];
	return 0;
}

void owner_finder_free(struct owner_finder *finder)
{
	if (!finder)
		return;
	(void)shutdown(finder->ours, SHUT_RDWR); /* by which it hears of it */
	pthread_join(finder->thread, NULL);
	(void)close(finder->ours);
	free(finder);
}
