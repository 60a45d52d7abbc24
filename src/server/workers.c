/* SPDX-License-Identifier: Apache-2.0 */
/* Two queues under one lock: what is to be run, and what has been. The loop hears of the second by an eventfd. */
#include "server/workers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/mem.h"

#define THREADS_MAX 64

struct queue {
	struct work *first, **end;
};

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t is_wanted;
	struct queue todo, done;
	pthread_t threads[THREADS_MAX];
	int n_threads, done_fd;
	struct event *on_done;
	bool is_ending;
};

static void push(struct queue *queue, struct work *work)
{
	work->next = NULL;
	*queue->end = work;
	queue->end = &work->next;
}

static struct work *pop(struct queue *queue)
{
	struct work *work = queue->first;

	if (!work)
		return NULL;
	queue->first = work->next;
	if (!queue->first)
		queue->end = &queue->first;
	return work;
}

static void wake_loop(struct workers *workers)
{
	uint64_t one = 1;

	(void)!write(workers->done_fd, &one, sizeof(one)); /* full: it is awake already */
}

static void *work_on(void *arg)
{
	struct workers *workers = arg;
	struct work *work;

	pthread_mutex_lock(&workers->lock);
	for (;;) {
		while (!(work = pop(&workers->todo)) && !workers->is_ending)
			pthread_cond_wait(&workers->is_wanted, &workers->lock);
		if (!work)
			break;
		pthread_mutex_unlock(&workers->lock);
		work->run(work);
		pthread_mutex_lock(&workers->lock);
		push(&workers->done, work);
		wake_loop(workers);
	}
	pthread_mutex_unlock(&workers->lock);
	return NULL;
}

static void take_back(struct workers *workers)
{
	struct work *work;

	pthread_mutex_lock(&workers->lock);
	while ((work = pop(&workers->done))) {
		pthread_mutex_unlock(&workers->lock);
		work->done(work);
		pthread_mutex_lock(&workers->lock);
	}
	pthread_mutex_unlock(&workers->lock);
}

static void on_done(evutil_socket_t fd, short what, void *ctx)
{
	uint64_t n;

	(void)what;
	(void)!read(fd, &n, sizeof(n));
	take_back(ctx);
}

static int start_threads(struct workers *workers, int n)
{
	sigset_t all, before;
	int r = 0;

	sigfillset(&all); /* signals are the loop's */
	pthread_sigmask(SIG_BLOCK, &all, &before);
	while (r == 0 && workers->n_threads < n && workers->n_threads < THREADS_MAX) {
		r = pthread_create(&workers->threads[workers->n_threads], NULL, work_on, workers);
		workers->n_threads += r == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

int workers_new(
	struct event_base *base, int n_threads, struct workers **ret_workers, struct err *err)
{
	scoped(workers) struct workers *workers = new0(struct workers);
	int r;

	pthread_mutex_init(&workers->lock, NULL);
	pthread_cond_init(&workers->is_wanted, NULL);
	workers->todo.end = &workers->todo.first;
	workers->done.end = &workers->done.first;
	workers->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (workers->done_fd < 0)
		return err_set(err, -errno, "make an eventfd: %m");
	workers->on_done =
		event_new(base, workers->done_fd, EV_READ | EV_PERSIST, on_done, workers);
	event_add(workers->on_done, NULL);
	r = start_threads(workers, n_threads);
	if (r < 0)
		return err_set(err, r, "start threads: %m");
	*ret_workers = take(&workers);
	return 0;
}

void workers_free(struct workers *workers)
{
	if (!workers)
		return;
	pthread_mutex_lock(&workers->lock);
	workers->is_ending = true;
	pthread_cond_broadcast(&workers->is_wanted);
	pthread_mutex_unlock(&workers->lock);
	for (int i = 0; i < workers->n_threads; i++)
		pthread_join(workers->threads[i], NULL);
	take_back(workers);
	if (workers->on_done)
		event_free(workers->on_done);
	scoped_close(&workers->done_fd);
	pthread_cond_destroy(&workers->is_wanted);
	pthread_mutex_destroy(&workers->lock);
	free(workers);
}

void workers_add(struct workers *workers, struct work *work)
{
	pthread_mutex_lock(&workers->lock);
	push(&workers->todo, work);
	pthread_cond_signal(&workers->is_wanted);
	pthread_mutex_unlock(&workers->lock);
}

void workers_post(struct workers *workers, struct work *work)
{
	pthread_mutex_lock(&workers->lock);
	push(&workers->done, work);
	pthread_mutex_unlock(&workers->lock);
	wake_loop(workers);
}
