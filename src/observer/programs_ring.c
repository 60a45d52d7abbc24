/* SPDX-License-Identifier: Apache-2.0 */
/* Rings in their slots.
 *
 * An update of a map of maps waits until no program can hold the value before: some ms. So it has a thread of
 * its own, which owns its descriptors; the entry itself is there at once. */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "observer/programs_internal.h"
#include "util/mem.h"
#include "util/scoped.h"

#define SPIN_MAX 5000 /* looks for a ring to appear in its slot */

struct ring_job {
	int rings_fd, ring_fd;
	uint32_t slot;
	size_t bytes; /* of the ring to make first */
	char *pin;
	struct programs_swap *swap;
};

static void free_job(struct ring_job *job)
{
	scoped_close(&job->rings_fd);
	scoped_close(&job->ring_fd);
	free(job->pin);
	free(job);
}

static void swap_ring(struct ring_job *job)
{
	scoped(ring) struct ring *ring = NULL;
	int fd;

	if (ring_new(job->bytes, &ring, NULL) == 0) {
		fd = ring_fd(ring);
		(void)bpf_obj_pin(fd, job->pin); /* without, a crash loses what is in it */
		if (bpf_map_update_elem(job->rings_fd, &job->slot, &fd, BPF_ANY) == 0)
			job->swap->ring = take(&ring);
	}
	__atomic_store_n(&job->swap->is_done, true, __ATOMIC_RELEASE);
}

static void *run_ring_job(void *arg)
{
	struct ring_job *job = arg;

	if (job->swap)
		swap_ring(job);
	else if (job->ring_fd >= 0)
		(void)bpf_map_update_elem(job->rings_fd, &job->slot, &job->ring_fd, BPF_ANY);
	else
		(void)bpf_map_delete_elem(job->rings_fd, &job->slot);
	free_job(job);
	return NULL;
}

static uint32_t ring_in_slot(const struct programs *p)
{
	uint32_t slot = (uint32_t)p->slot, id = 0;

	return bpf_map_lookup_elem(p->rings_fd, &slot, &id) == 0 ? id : 0;
}

static struct ring_job *new_job(const struct programs *p)
{
	struct ring_job *job = new0(struct ring_job);

	job->rings_fd = fcntl(p->rings_fd, F_DUPFD_CLOEXEC, 0);
	job->ring_fd = -1;
	job->slot = (uint32_t)p->slot;
	return job;
}

static void start_job(struct ring_job *job)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attr, run_ring_job, job);
	pthread_attr_destroy(&attr);
	if (r != 0)
		run_ring_job(job);
}

int programs_set_ring(struct programs *p, int ring_fd, struct err *err)
{
	struct ring_job *job = new_job(p);
	uint32_t before = ring_in_slot(p);

	if (ring_fd >= 0)
		job->ring_fd = fcntl(ring_fd, F_DUPFD_CLOEXEC, 0);
	start_job(job);
	for (int i = 0; ring_fd >= 0 && ring_in_slot(p) == before; i++) {
		if (i == SPIN_MAX)
			return err_set(err, -ETIMEDOUT, "the ring did not come into its slot");
		usleep(10);
	}
	return 0;
}

bool programs_is_swapped(const struct programs_swap *swap)
{
	return __atomic_load_n(&swap->is_done, __ATOMIC_ACQUIRE);
}

static void ring_name(const char *id, int n, char name[64])
{
	snprintf(name, 64, "ring_%s_%d", id, n);
}

void programs_start_swap(
	struct programs *p, const char *id, int n, size_t bytes, struct programs_swap *swap)
{
	struct ring_job *job = new_job(p);
	char name[64], path[PATH_MAX];

	ring_name(id, n, name);
	job->bytes = bytes;
	job->swap = swap;
	if (programs_pin_path(p, name, path) == 0)
		job->pin = mem_dup(path);
	start_job(job);
}

int programs_pin_ring(const struct programs *p, const char *id, int n, int ring_fd, struct err *err)
{
	char name[64];

	ring_name(id, n, name);
	return programs_pin_put(p, name, ring_fd, err);
}

int programs_get_ring(const struct programs *p, const char *id, int n)
{
	char name[64];

	ring_name(id, n, name);
	return programs_pin_get(p, name);
}

void programs_unpin_rings(const struct programs *p, const char *id)
{
	char name[64];

	for (int n = 0; n < PROGRAMS_RINGS_MAX; n++) {
		ring_name(id, n, name);
		programs_pin_remove(p, name);
	}
}
