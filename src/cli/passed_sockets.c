/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/passed_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/mem.h"

#define FIRST     3
#define OURS_FROM 64 /* above all that is placed */

/* A whole number; -1 where it is none. */
static long number_of(const char *name)
{
	const char *text = getenv(name);
	char *end;
	long n;

	if (!text || *text < '0' || *text > '9')
		return -1;
	errno = 0;
	n = strtol(text, &end, 10);
	return *end || errno ? -1 : n;
}

/* "web:admin": fewer than there are sockets leave the rest without a name. */
static char *name_of(size_t i)
{
	const char *text = getenv("LISTEN_FDNAMES");

	for (size_t k = 0; text && k < i; k++) {
		text = strchr(text, ':');
		text = text ? text + 1 : NULL;
	}
	return text && *text && *text != ':' ? mem_copy(text, strcspn(text, ":"))
	                                     : mem_printf("number %zu", i + 1);
}

static int take_one(struct passed_sockets *passed, size_t i, struct err *err)
{
	int fd = fcntl(FIRST + (int)i, F_DUPFD_CLOEXEC, OURS_FROM);

	if (fd < 0)
		return err_set(err, -errno,
			"of the sockets that LISTEN_FDS counts, number %zu is not open", i + 1);
	close(FIRST + (int)i);
	passed->fds[i] = fd;
	passed->names[i] = name_of(i);
	passed->n++;
	return 0;
}

int passed_sockets_take(struct passed_sockets *passed, struct err *err)
{
	long n = number_of("LISTEN_PID") == getpid() ? number_of("LISTEN_FDS") : 0;
	int r = 0;

	*passed = (struct passed_sockets){.n = 0};
	if (n < 0)
		r = err_set(err, -EINVAL, "LISTEN_FDS is no number");
	if (n > PASSED_SOCKETS_MAX)
		r = err_set(err, -E2BIG, "%ld sockets were passed: at most %d can be used", n,
			PASSED_SOCKETS_MAX);
	for (long i = 0; r == 0 && i < n; i++)
		r = take_one(passed, (size_t)i, err);
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	return r;
}

int passed_sockets_place(const struct passed_sockets *passed, int first, struct err *err)
{
	for (size_t i = 0; i < passed->n; i++)
		if (dup2(passed->fds[i], first + (int)i) < 0)
			return err_set(err, -errno, "hand over '%s': %m", passed->names[i]);
	return 0;
}

void passed_sockets_done(struct passed_sockets *passed)
{
	for (size_t i = 0; i < passed->n; i++) {
		close(passed->fds[i]);
		free(passed->names[i]);
	}
	passed->n = 0;
}
