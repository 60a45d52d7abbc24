/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/inside.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/mem.h"

#define STACK_BYTES (64u << 10)

struct inside {
	int ours,
		theirs; /* a pair: requests one way, answers the other; closing ours ends the thread */
	int netns_fd; /* until the thread has entered; borrowed */
	pthread_t thread;
};

struct request {
	int family, type;
};

static void *serve(void *arg)
{
	struct inside *inside = arg;
	struct request request;
	int answer = setns(inside->netns_fd, CLONE_NEWNET) < 0 ? -errno : 0;

	while (send(inside->theirs, &answer, sizeof(answer), MSG_NOSIGNAL) == sizeof(answer) &&
		recv(inside->theirs, &request, sizeof(request), 0) == sizeof(request)) {
		answer = socket(request.family, request.type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (answer < 0)
			answer = -errno;
	}
	return NULL;
}

static int wait_answer(struct inside *inside)
{
	int answer;

	return recv(inside->ours, &answer, sizeof(answer), 0) == sizeof(answer) ? answer : -EPIPE;
}

static int start(struct inside *inside)
{
	pthread_attr_t attr;
	int r = pthread_attr_init(&attr);

	if (r != 0)
		return -r;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	r = pthread_create(&inside->thread, &attr, serve, inside);
	pthread_attr_destroy(&attr);
	return -r;
}

int inside_open(int netns_fd, struct inside **ret_inside, struct err *err)
{
	struct inside *inside = new0(struct inside);
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		free(inside);
		return err_set(err, -errno, "make a pair of sockets: %m");
	}
	*inside = (struct inside){.ours = pair[0], .theirs = pair[1], .netns_fd = netns_fd};
	r = start(inside);
	if (r < 0) {
		close(pair[0]);
		close(pair[1]);
		free(inside);
		return err_set(err, r, "start a thread: %m");
	}
	r = wait_answer(inside);
	if (r < 0) {
		inside_free(inside);
		return err_set(err, r, "enter the sandbox's network: %m");
	}
	*ret_inside = inside;
	return 0;
}

void inside_free(struct inside *inside)
{
	if (!inside)
		return;
	close(inside->ours);
	pthread_join(inside->thread, NULL);
	close(inside->theirs);
	free(inside);
}

int inside_socket(struct inside *inside, int family, int type)
{
	struct request request = {.family = family, .type = type};

	if (send(inside->ours, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request))
		return -EPIPE;
	return wait_answer(inside);
}
