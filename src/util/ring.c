/* SPDX-License-Identifier: Apache-2.0 */
#include "util/ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/kmap.h"
#include "util/mem.h"

struct ring {
	int fd;
	size_t size, page;
	unsigned long *consumer;       /* ours: how far it was given back */
	const unsigned long *producer; /* the kernel's */
	const char *data;              /* mapped twice in a row, so that records never wrap */
	unsigned long at;              /* how far it was read */
};

static int map_pages(struct ring *ring)
{
	char *p = mmap(NULL, ring->page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	ring->consumer = (unsigned long *)p;
	p = mmap(NULL, ring->page + 2 * ring->size, PROT_READ, MAP_SHARED, ring->fd,
		(off_t)ring->page);
	if (p == MAP_FAILED)
		return -errno;
	ring->producer = (const unsigned long *)p;
	ring->data = p + ring->page;
	ring->at = __atomic_load_n(ring->consumer, __ATOMIC_ACQUIRE);
	return 0;
}

int ring_open(int fd, struct ring **ret_ring, struct err *err)
{
	scoped(ring) struct ring *ring = new0(struct ring);
	int r;

	ring->fd = -1;
	r = kmap_ring_size(fd, &ring->size);
	if (r < 0)
		return err_set(err, r, "read about a ring: %m");
	ring->page = (size_t)sysconf(_SC_PAGESIZE);
	ring->fd = fd;
	r = map_pages(ring);
	if (r < 0) {
		ring->fd = -1;
		return err_set(err, r, "map a ring: %m");
	}
	*ret_ring = take(&ring);
	return 0;
}

int ring_new(size_t bytes, struct ring **ret_ring, struct err *err)
{
	scoped_fd int fd = kmap_ring_new(bytes);
	int r;

	if (fd < 0)
		return err_set(err, fd, "make a ring of %zu bytes: %m", bytes);
	r = ring_open(fd, ret_ring, err);
	if (r < 0)
		return r;
	(void)take_fd(&fd);
	return 0;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	if (ring->consumer)
		munmap(ring->consumer, ring->page);
	if (ring->producer)
		munmap((void *)ring->producer, ring->page + 2 * ring->size);
	scoped_close(&ring->fd);
	free(ring);
}

int ring_fd(const struct ring *ring)
{
	return ring->fd;
}

size_t ring_size(const struct ring *ring)
{
	return ring->size;
}

size_t ring_waiting(const struct ring *ring)
{
	return __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) - ring->at;
}

static size_t record_end(unsigned int len)
{
	return (len + BPF_RINGBUF_HDR_SZ + 7) & ~(size_t)7;
}

int ring_span(struct ring *ring, size_t max, struct slice *ret_span)
{
	const char *p = ring->data + (ring->at & (ring->size - 1));
	size_t waiting = ring_waiting(ring), n = 0;
	bool is_busy = false;

	while (n < waiting) {
		unsigned int len = __atomic_load_n((const unsigned int *)(p + n), __ATOMIC_ACQUIRE);
		size_t end = n + record_end(len & ~BPF_RINGBUF_DISCARD_BIT);

		is_busy = len & BPF_RINGBUF_BUSY_BIT;
		if (is_busy || (n > 0 && end > max))
			break;
		n = end;
	}
	if (n == 0)
		return is_busy ? -EBUSY : 0;
	ring->at += n;
	*ret_span = (struct slice){.p = p, .len = n};
	return 1;
}

bool ring_record(struct slice *span, struct slice *ret_record)
{
	while (span->len > 0) {
		unsigned int len = *(const unsigned int *)span->p;
		bool is_discarded = len & BPF_RINGBUF_DISCARD_BIT;

		len &= ~BPF_RINGBUF_DISCARD_BIT;
		*ret_record = (struct slice){.p = span->p + BPF_RINGBUF_HDR_SZ, .len = len};
		span->p += record_end(len);
		span->len -= record_end(len);
		if (!is_discarded)
			return true;
	}
	return false;
}

void ring_release(struct ring *ring)
{
	__atomic_store_n(ring->consumer, ring->at, __ATOMIC_RELEASE);
}
