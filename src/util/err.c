/* SPDX-License-Identifier: Apache-2.0 */
#include "util/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int r, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return r;
	errno = -r;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return r;
}

int err_wrap(struct err *err, int r, const char *fmt, ...)
{
	char cause[ERR_MAX];
	va_list ap;
	size_t used;

	if (!err)
		return r;
	memcpy(cause, err->msg, sizeof(cause));
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	used = strlen(err->msg);
	snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", cause);
	return r;
}
