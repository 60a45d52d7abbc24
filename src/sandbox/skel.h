/* SPDX-License-Identifier: Apache-2.0 */
/* The skeleton of the host view: links into /usr, /etc without secrets, the package manager's state, empty
 * homes. Made once per state folder and host state, shared read-only by all sandboxes. */
#ifndef SANDBOX_SKEL_H
#define SANDBOX_SKEL_H

#include "util/err.h"

/* Any address answers; without a network it cannot be reached. */
#define SKEL_RESOLV_CONF "nameserver 10.0.0.53\n"

/* The folder's path (the caller's), and a lock that keeps it from being removed while held. Made anew where
 * the host's /etc or packages changed since, or the machine was started: it is never synced to disk. */
int skel_open(const char *state_dir, char **ret_path, int *ret_lock_fd, struct err *err);

#endif
