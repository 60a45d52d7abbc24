/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/late.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/mem.h"

#define LATE_MAX 64 /* over it, they are closed at once */

struct late {
	int fds[LATE_MAX];
	size_t n;
};

static struct late late;

void late_close(int fd)
{
	if (late.n < LATE_MAX)
		late.fds[late.n++] = fd;
	else
		(void)close(fd);
}

static void *close_thread(void *arg)
{
	struct late *job = arg;

	for (size_t i = 0; i < job->n; i++)
		(void)close(job->fds[i]);
	free(job);
	return NULL;
}

void late_run(void)
{
	struct late *job = mem_copy(&late, sizeof(late));
	pthread_t thread;

	late.n = 0;
	if (pthread_create(&thread, NULL, close_thread, job) == 0)
		pthread_detach(thread);
	else
		close_thread(job);
}
