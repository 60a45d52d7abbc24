/* SPDX-License-Identifier: Apache-2.0 */
/* A root's own keystores: any bytes. What is taken for one and copied is one still. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/trust_java.h"
#include "sandbox/trust_p12.h"

typedef int copy_fn(int from_fd, uint64_t size, struct slice der, int to_fd);

static uint64_t size_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		abort();
	return (uint64_t)st.st_size;
}

static void check(copy_fn *copy, int from, int to, int again)
{
	const struct slice der = {.p = "0\x03\x02\x01\x01", .len = 5};

	if (ftruncate(to, 0) < 0 || lseek(to, 0, SEEK_SET) < 0 || ftruncate(again, 0) < 0 ||
		lseek(again, 0, SEEK_SET) < 0)
		abort();
	if (copy(from, size_of(from), der, to) < 0)
		return;
	if (size_of(to) <= size_of(from))
		abort();
	/* The older form counts its entries, up to a limit that has a next one. */
	if (copy == trust_p12_copy && copy(to, size_of(to), der, again) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int from = -1, to = -1, again = -1;

	if (from < 0) {
		from = memfd_create("from", 0);
		to = memfd_create("to", 0);
		again = memfd_create("again", 0);
	}
	if (ftruncate(from, 0) < 0 || pwrite(from, data, size, 0) != (ssize_t)size)
		return 0;
	check(trust_java_copy, from, to, again);
	check(trust_p12_copy, from, to, again);
	return 0;
}
