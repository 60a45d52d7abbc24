/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong, in words for the user, carried beside a negative errno. */
#ifndef UTIL_ERR_H
#define UTIL_ERR_H

#define ERR_MAX 512

/* Lives on the stack of whoever will print it. Nothing to release. */
struct err {
	char msg[ERR_MAX];
};

/* Sets the words and returns r, a negative errno; %m in fmt prints the reason of r. err may be NULL. */
int err_set(struct err *err, int r, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts the words before those already there and returns r. */
int err_wrap(struct err *err, int r, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
