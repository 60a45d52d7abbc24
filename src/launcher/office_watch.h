/* SPDX-License-Identifier: Apache-2.0 */
/* What changes in the files of a sandbox, for a control plane: `cloche watch-files`, which gives up root's rights but to read, and
 * prints to a pipe of whoever asked. It ends when nobody has the other end any more, whoever was killed. */
#ifndef LAUNCHER_OFFICE_WATCH_H
#define LAUNCHER_OFFICE_WATCH_H

#include "launcher/office.h"
#include "util/str.h"

/* The path of the request {path_b64}: absolute, of at most 4095 bytes, any but NUL. -EINVAL. */
int office_watch_read(const json_t *body, struct str *path, struct err *err);
/* This process, a child of the launcher, becomes it. is_patient: the path need not be there yet. */
_Noreturn void office_watch_become(const struct office *office, const char *id,
	const struct str *path, bool is_patient, int out_fd);

#endif
