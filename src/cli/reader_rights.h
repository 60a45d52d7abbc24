/* SPDX-License-Identifier: Apache-2.0 */
/* For a verb that reads what is inside a sandbox for long: of root's rights it keeps the one to read. */
#ifndef CLI_READER_RIGHTS_H
#define CLI_READER_RIGHTS_H

#include <sys/types.h>

#include "util/err.h"

/* Becomes that user for good, with the right to read any file and folder and no other. What the kernel counts by user
 * (inotify's watches and instances) is counted for that one from then on. What is open stays open. */
int reader_rights_keep(uid_t uid, struct err *err);

#endif
