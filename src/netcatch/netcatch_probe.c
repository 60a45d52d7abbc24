/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and ties the kernel half as for a sandbox, and lets go of it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

#include "netcatch/netcatch.h"
#include "netcatch/netcatch_load.h"
#include "netcatch/netcatch_netns.h"
#include "netcatch/netcatch_rules.h"
#include "netcatch/netcatch_sockets.h"
#include "util/scoped.h"

struct attempt {
	unsigned which; /* programs; none: rules */
	int cgroup_fd;
	struct err *err;
	int r;
};

static int try_inside(struct netcatch_sockets *sockets, const struct attempt *attempt)
{
	bool by_rules = attempt->which == 0;
	int r = netcatch_netns_configure(attempt->err);

	if (r == 0)
		r = netcatch_sockets_open(sockets, by_rules, attempt->err);
	if (r == 0 && by_rules)
		r = netcatch_rules_set(sockets->fds[NETCATCH_UDP6] >= 0, attempt->err);
	return r;
}

static int try_object(struct netcatch_object *object, const struct attempt *attempt)
{
	const struct netcatch_fields none = {{0}};
	scoped_fd int netns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int r = netcatch_load_maps(object, attempt->err);

	if (r == 0)
		r = netcatch_load(object, &none, attempt->which, attempt->err);
	if (r == 0)
		r = netcatch_attach(
			object, attempt->which, netns_fd, attempt->cgroup_fd, attempt->err);
	return r;
}

/* On a thread that ends in the namespace it made. */
static void *run(void *arg)
{
	struct attempt *attempt = arg;
	struct netcatch_object object;
	struct netcatch_sockets sockets;

	netcatch_object_init(&object);
	netcatch_sockets_init(&sockets);
	if (unshare(CLONE_NEWNET) < 0)
		attempt->r = err_set(attempt->err, -errno, "make a network namespace: %m");
	else
		attempt->r = try_inside(&sockets, attempt);
	if (attempt->r == 0 && attempt->which)
		attempt->r = try_object(&object, attempt);
	netcatch_object_done(&object);
	netcatch_sockets_close(&sockets);
	return NULL;
}

static int try(unsigned which, int cgroup_fd, struct err *err)
{
	struct attempt attempt = {.which = which, .cgroup_fd = cgroup_fd, .err = err};
	pthread_t thread;
	int r = -pthread_create(&thread, NULL, run, &attempt);

	if (r < 0)
		return err_set(err, r, "start a thread: %m");
	pthread_join(thread, NULL);
	return attempt.r;
}

int netcatch_probe(struct err *err)
{
	return try(NETCATCH_CATCH, -1, err);
}

int netcatch_probe_rules(struct err *err)
{
	return try(0, -1, err);
}

int netcatch_probe_hooks(int cgroup_fd, struct err *err)
{
	return try(NETCATCH_HOOKS, cgroup_fd, err);
}
