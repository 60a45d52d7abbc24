/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gateway/bridge.h"
#include "gateway/budget.h"
#include "gateway/gateway_internal.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "util/str.h"

#define FLOWS_MAX     16384
#define FDS_OF_A_FLOW 2
#define FDS_BESIDE    2048 /* UDP flows, questions, names over TCP, pipes and what is always open */
#define TELL_NS       (60 * CLOCK_NS_PER_S)

#define WHY_FLOWS     "the gateway of this sandbox holds as many connections as it can"
#define WHY_MEMORY    "the gateway of this sandbox holds as much in memory as it may"

struct limits {
	struct gateway *gw;
	struct budget *budget;
	size_t flows_max;
	int spare_fd;
	struct poller_timer timer; /* until the next hint */
	uint64_t n_refused, n_broken;
	const char *why;
};

static size_t flows_max(void)
{
	struct rlimit files;
	size_t beside, n;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return 0;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* fewer flows */
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return 0;
	beside = files.rlim_cur / 2 < FDS_BESIDE ? files.rlim_cur / 2 : FDS_BESIDE;
	n = (files.rlim_cur - beside) / FDS_OF_A_FLOW;
	return n < FLOWS_MAX ? n : FLOWS_MAX;
}

int limits_open(struct gateway *gw, struct limits **ret_limits, struct err *err)
{
	struct limits *limits = new0(struct limits);
	int r = budget_open("/proc/self/statm", &limits->budget, err);

	if (r < 0) {
		free(limits);
		return r;
	}
	limits->gw = gw;
	limits->flows_max = flows_max();
	limits->spare_fd = -1;
	limits_closed(limits);
	*ret_limits = limits;
	return 0;
}

static void tell(struct limits *limits, const char *reason, uint64_t n)
{
	struct event ev = {.kind = EVENT_HINT};

	event_set_text(&ev, reason, reason);
	if (n)
		event_set(&ev, count, (event_int)n);
	event_set_text(&ev, advice,
		"connections were refused or broken off since too many were open at once: their "
		"events say which");
	channel_event(limits->gw->channel, 0, &ev);
}

static void tell_sum(struct limits *limits)
{
	uint64_t n = limits->n_refused + limits->n_broken;
	scoped_str struct str reason = {0};

	if (n == 0)
		return;
	str_printf(&reason, "%s: %llu new ones were refused, %llu broken off", limits->why,
		(unsigned long long)limits->n_refused, (unsigned long long)limits->n_broken);
	tell(limits, reason.p, n);
	limits->n_refused = limits->n_broken = 0;
}

static void on_minute(void *ctx)
{
	struct limits *limits = ctx;
	bool goes_on = limits->n_refused + limits->n_broken > 0;

	tell_sum(limits);
	if (goes_on)
		poller_timer_set(limits->gw->poller, &limits->timer, TELL_NS);
}

/* That it begins is told at once, how many they were after a minute. */
static void count(struct limits *limits, uint64_t *counter, const char *why)
{
	limits->why = why;
	(*counter)++;
	if (limits->timer.place)
		return;
	tell(limits, why, 0);
	limits->timer = (struct poller_timer){.on_time = on_minute, .ctx = limits};
	poller_timer_set(limits->gw->poller, &limits->timer, TELL_NS);
}

void limits_free(struct limits *limits)
{
	if (!limits)
		return;
	if (limits->gw->channel)
		tell_sum(limits);
	scoped_close(&limits->spare_fd);
	budget_free(limits->budget);
	free(limits);
}

int limits_check(struct limits *limits, const char **ret_why)
{
	if (limits->gw->n_flows >= limits->flows_max) {
		count(limits, &limits->n_refused, *ret_why = WHY_FLOWS);
		return -EMFILE;
	}
	if (budget_look(limits->budget, poller_now_ns(limits->gw->poller)) == BUDGET_ROOM)
		return 0;
	count(limits, &limits->n_refused, *ret_why = WHY_MEMORY);
	return -ENOMEM;
}

const char *limits_no_room(struct limits *limits)
{
	count(limits, &limits->n_refused, WHY_FLOWS);
	return WHY_FLOWS;
}

int limits_accept(
	struct limits *limits, int listener, struct sockaddr_storage *ret_peer, bool *ret_full)
{
	socklen_t len = sizeof(*ret_peer);
	int fd = accept4(listener, (struct sockaddr *)ret_peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	*ret_full = fd < 0 && (errno == EMFILE || errno == ENFILE) && limits->spare_fd >= 0;
	if (!*ret_full)
		return fd < 0 ? -errno : fd;
	close(take_fd(&limits->spare_fd));
	fd = accept4(listener, (struct sockaddr *)ret_peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		return fd;
	fd = -errno;
	limits_closed(limits);
	return fd;
}

void limits_closed(struct limits *limits)
{
	if (limits->spare_fd < 0)
		limits->spare_fd = open("/", O_PATH | O_CLOEXEC); /* none: the next time */
}

static void on_broken(void *ctx)
{
	struct limits *limits = ctx;

	count(limits, &limits->n_broken, WHY_MEMORY);
}

void limits_turn(struct limits *limits)
{
	int64_t now_ns = poller_now_ns(limits->gw->poller);

	if (budget_look(limits->budget, now_ns) != BUDGET_OVER)
		return;
	bridge_all_relieve(
		limits->gw->bridges, budget_excess(limits->budget), WHY_MEMORY, on_broken, limits);
	budget_give_back(limits->budget, now_ns);
}
