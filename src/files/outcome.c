/* SPDX-License-Identifier: Apache-2.0 */
#include "files/outcome.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SENTENCE_MAX 480

/* Nobody may be listening: then there is nobody to tell. */
static void say(const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(2, text, len);

		if (n < 0 && errno != EINTR)
			return;
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

void outcome_fail(enum files_wire_exit code, const char *fmt, ...)
{
	char text[SENTENCE_MAX];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	say(text, strlen(text));
	_exit(code);
}

static enum files_wire_exit exit_of(int errnum)
{
	static const struct {
		int errnum;
		enum files_wire_exit code;
	} kinds[] = {
		{ENOENT, FILES_WIRE_NOT_FOUND},
		{ENOTDIR, FILES_WIRE_NOT_FOUND},
		{EEXIST, FILES_WIRE_EXISTS},
		{EISDIR, FILES_WIRE_NOT_FILE},
		{ENXIO, FILES_WIRE_NOT_FILE},
		{EACCES, FILES_WIRE_DENIED},
		{EPERM, FILES_WIRE_DENIED},
		{EROFS, FILES_WIRE_DENIED},
		{ETXTBSY, FILES_WIRE_DENIED},
		{EBUSY, FILES_WIRE_DENIED},
		{ENOSPC, FILES_WIRE_NO_SPACE},
		{EDQUOT, FILES_WIRE_NO_SPACE},
		{EFBIG, FILES_WIRE_NO_SPACE},
		{ELOOP, FILES_WIRE_INVALID},
		{ENAMETOOLONG, FILES_WIRE_INVALID},
		{EINVAL, FILES_WIRE_INVALID},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].errnum == errnum)
			return kinds[i].code;
	return FILES_WIRE_FAILED;
}

void outcome_fail_errno(int errnum, const char *what, const char *path)
{
	outcome_fail(exit_of(errnum), "%s '%.300s': %s", what, path, strerror(errnum));
}

void outcome_write(const void *p, size_t len)
{
	const char *from = p;

	while (len > 0) {
		ssize_t n = write(1, from, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			outcome_fail(
				FILES_WIRE_CUT, "nobody takes the answer: %s", strerror(errno));
		from += n;
		len -= (size_t)n;
	}
}

void outcome_used(const char *path)
{
	say(path, strlen(path));
}

static void on_alarm(int signal)
{
	static const char text[] = "it takes too long: ask for less";

	say(text, sizeof(text) - 1);
	_exit(FILES_WIRE_TOO_SLOW);
}

void outcome_set_deadline(int seconds)
{
	struct sigaction action = {.sa_handler = on_alarm};

	(void)sigaction(SIGALRM, &action, NULL); /* with these it cannot fail */
	(void)alarm((unsigned)seconds);
}
