/* SPDX-License-Identifier: Apache-2.0 */
#include "netcatch/netcatch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netcatch/netcatch_load.h"
#include "netcatch/netcatch_netns.h"
#include "netcatch/netcatch_rules.h"
#include "netcatch/netcatch_sockets.h"
#include "netcatch/netcatch_wire.h"
#include "util/kmap.h"
#include "util/mem.h"

#define TEST_NO_HOOKS "CLOCHE_NO_NET_HOOKS" /* as on a host that does not give them */

struct netcatch {
	struct netcatch_object object;
	struct netcatch_sockets sockets;
	char *cache;
	pthread_t thread;
	bool is_running;
	int netns_fd, cgroup_fd, diag_fd;
	int r; /* what came of it */
	struct err err;
	char *notice, *by_rules;
};

/* A host without it has no owners that are looked up. */
static void open_diag(struct netcatch *netcatch)
{
	int sock = netcatch->diag_fd >= 0 ? netcatch->diag_fd : netcatch_diag_socket();

	netcatch->diag_fd = sock < 0 ? -1 : sock;
}

static int open_inside(struct netcatch *netcatch, bool for_rules, struct err *err)
{
	const int *fds = netcatch->sockets.fds;
	int own, r = netcatch_netns_enter(netcatch->netns_fd, &own, err);

	if (r < 0)
		return r;
	r = netcatch_netns_configure(err);
	if (r == 0)
		r = netcatch_sockets_open(&netcatch->sockets, for_rules, err);
	if (r == 0 && for_rules)
		r = netcatch_rules_set(fds[NETCATCH_UDP6] >= 0, err);
	if (r == 0)
		open_diag(netcatch);
	netcatch_netns_leave(own);
	return r;
}

static int tie_sockets(struct netcatch *netcatch, struct err *err)
{
	const int *fds = netcatch->sockets.fds;
	int filter = netcatch->object.programs[NETCATCH_PROGRAM_hold], r = 0;

	if (setsockopt(fds[NETCATCH_HOLD], SOL_SOCKET, SO_ATTACH_BPF, &filter, sizeof(filter)) < 0)
		return err_set(err, -errno, "attach the filter of held connections: %m");
	for (uint32_t i = 0; r == 0 && i < NETCATCH_N_SOCKETS; i++) {
		uint64_t fd = (uint64_t)fds[i];

		if (fds[i] >= 0)
			r = kmap_set(netcatch->object.maps[NETCATCH_MAP_sockets], &i, &fd);
	}
	return r < 0 ? err_set(err, r, "enter the gateway's sockets in their map: %m") : 0;
}

/* Without them everything is caught all the same. */
static void add_hooks(struct netcatch *netcatch, const struct netcatch_fields *fields)
{
	struct netcatch_object *object = &netcatch->object;
	struct err err;
	int r = getenv(TEST_NO_HOOKS) ? err_set(&err, -EPERM, "told to do without")
	                              : netcatch_load(object, fields, NETCATCH_HOOKS, &err);

	if (r == 0)
		r = netcatch_attach(
			object, NETCATCH_HOOKS, netcatch->netns_fd, netcatch->cgroup_fd, &err);
	if (r < 0)
		netcatch->notice = mem_dup(err.msg);
}

static int catch_by_programs(struct netcatch *netcatch, struct err *err)
{
	struct netcatch_object *object = &netcatch->object;
	struct netcatch_fields fields;
	int r;

	netcatch_fields_get(netcatch->cache, &fields);
	r = netcatch_load_maps(object, err);
	if (r == 0)
		r = netcatch_load(object, &fields, NETCATCH_CATCH, err);
	if (r == 0)
		r = netcatch_attach(
			object, NETCATCH_CATCH, netcatch->netns_fd, netcatch->cgroup_fd, err);
	/* Last what takes sockets: a map lets go of them some time after it is closed, and rules need their places. */
	if (r == 0)
		r = open_inside(netcatch, false, err);
	if (r == 0)
		r = tie_sockets(netcatch, err);
	if (r == 0)
		add_hooks(netcatch, &fields);
	return r;
}

/* Whatever stands in the way of programs: a right, a kernel that has not all they take, a filter of calls. */
static int catch_by_rules(struct netcatch *netcatch, const struct err *why, struct err *err)
{
	int r;

	netcatch_object_done(&netcatch->object);
	netcatch_sockets_close(&netcatch->sockets);
	r = open_inside(netcatch, true, err);
	if (r < 0)
		return err_wrap(err, r, "%s, and in place of it", why->msg);
	netcatch->by_rules = mem_dup(why->msg);
	return 0;
}

static int make(struct netcatch *netcatch)
{
	struct err why;

	if (catch_by_programs(netcatch, &why) == 0)
		return 0;
	return catch_by_rules(netcatch, &why, &netcatch->err);
}

static void *run(void *arg)
{
	struct netcatch *netcatch = arg;

	netcatch->r = make(netcatch);
	return NULL;
}

struct netcatch *netcatch_start(const struct netcatch_config *config)
{
	struct netcatch *netcatch = new0(struct netcatch);

	netcatch_object_init(&netcatch->object);
	netcatch_sockets_init(&netcatch->sockets);
	netcatch->diag_fd = -1;
	netcatch->cache = mem_dup(config->cache);
	/* Where this fails, so does what follows. */
	netcatch->netns_fd = fcntl(config->netns_fd, F_DUPFD_CLOEXEC, 0);
	netcatch->cgroup_fd = fcntl(config->cgroup_fd, F_DUPFD_CLOEXEC, 0);
	netcatch->r = -pthread_create(&netcatch->thread, NULL, run, netcatch);
	netcatch->is_running = netcatch->r == 0;
	if (!netcatch->is_running)
		(void)err_set(&netcatch->err, netcatch->r, "start a thread: %m");
	return netcatch;
}

static void join(struct netcatch *netcatch)
{
	if (netcatch->is_running)
		pthread_join(netcatch->thread, NULL);
	netcatch->is_running = false;
}

int netcatch_wait(struct netcatch *netcatch, struct err *err)
{
	join(netcatch);
	if (netcatch->r < 0)
		*err = netcatch->err;
	return netcatch->r;
}

void netcatch_free(struct netcatch *netcatch)
{
	if (!netcatch)
		return;
	join(netcatch);
	scoped_close(&netcatch->netns_fd);
	scoped_close(&netcatch->cgroup_fd);
	scoped_close(&netcatch->diag_fd);
	netcatch_object_done(&netcatch->object);
	netcatch_sockets_close(&netcatch->sockets);
	free(netcatch->cache);
	free(netcatch->notice);
	free(netcatch->by_rules);
	free(netcatch);
}

const char *netcatch_notice(const struct netcatch *netcatch)
{
	return netcatch->notice;
}

const char *netcatch_by_rules(const struct netcatch *netcatch)
{
	return netcatch->by_rules;
}

void netcatch_diag_init(const struct netcatch *netcatch, struct netcatch_diag *ret_diag)
{
	*ret_diag =
		(struct netcatch_diag){.sock = netcatch->diag_fd, .cgroup_fd = netcatch->cgroup_fd};
}

int netcatch_fd(const struct netcatch *netcatch, enum netcatch_part part)
{
	const struct netcatch_sockets *s = &netcatch->sockets;
	const int *maps = netcatch->object.maps;
	const int fds[NETCATCH_N_PARTS] = {
		[NETCATCH_PART_TCP] = s->fds[NETCATCH_TCP],
		[NETCATCH_PART_UDP4] = s->fds[NETCATCH_UDP4],
		[NETCATCH_PART_UDP6] = s->fds[NETCATCH_UDP6],
		[NETCATCH_PART_DNS4] = s->fds[NETCATCH_DNS4],
		[NETCATCH_PART_DNS6] = s->fds[NETCATCH_DNS6],
		[NETCATCH_PART_RAW4] = s->raw4,
		[NETCATCH_PART_RAW6] = s->raw6,
		[NETCATCH_PART_FLOWS] = maps[NETCATCH_MAP_flows],
		[NETCATCH_PART_OWNERS] = maps[NETCATCH_MAP_owners],
		[NETCATCH_PART_RING] = maps[NETCATCH_MAP_ring],
		[NETCATCH_PART_COPIES] = s->copies,
		[NETCATCH_PART_REFUSED] = maps[NETCATCH_MAP_refused],
	};

	return fds[part];
}

/* First datagrams to somewhere, and questions for names, that found no room. */
static uint64_t datagrams_dropped(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(info);

	return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) == 0
	               ? info[SK_MEMINFO_DROPS]
	               : 0;
}

uint64_t netcatch_lost(const struct netcatch *netcatch)
{
	int map_fd = netcatch->object.maps[NETCATCH_MAP_lost];
	uint64_t sum = 0, n = 0;

	for (uint32_t kind = 0; kind < NETCATCH_N_LOST; kind++)
		if (!netcatch->by_rules && kmap_find(map_fd, &kind, &n) == 0)
			sum += n;
	for (enum netcatch_socket i = NETCATCH_UDP4; i <= NETCATCH_DNS6; i++)
		sum += datagrams_dropped(netcatch->sockets.fds[i]);
	return sum;
}

/* What comes in meanwhile is bounded: nobody but the kernel half enters anything, and each map has room for so much. */
static void empty(int map_fd, size_t max)
{
	char key[sizeof(struct netcatch_key)];

	_Static_assert(sizeof(struct netcatch_target) <= sizeof(key), "room for either");
	while (max-- > 0 && kmap_first(map_fd, key) == 0)
		(void)kmap_remove(map_fd, key); /* gone already is fine */
}

void netcatch_reset(struct netcatch *netcatch)
{
	const int *maps = netcatch->object.maps;

	if (netcatch->by_rules)
		return; /* nothing is kept */
	empty(maps[NETCATCH_MAP_flows], NETCATCH_FLOWS_MAX);
	empty(maps[NETCATCH_MAP_owners], NETCATCH_OWNERS_MAX);
	empty(maps[NETCATCH_MAP_refused], NETCATCH_REFUSED_MAX);
}
