/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share about one sandbox. */
#ifndef SANDBOX_SANDBOX_INTERNAL_H
#define SANDBOX_SANDBOX_INTERNAL_H

#include <pthread.h>

#include "sandbox/cgroup.h"
#include "sandbox/idrange.h"
#include "sandbox/lowers.h"
#include "sandbox/mounts.h"
#include "sandbox/ns.h"
#include "sandbox/quota.h"
#include "sandbox/rootfs.h"
#include "sandbox/sandbox.h"
#include "sandbox/seccomp.h"
#include "sandbox/trust.h"

struct sandbox {
	char *state_dir;
	char *default_cwd;
	char *workdir; /* made where it is missing; NULL: none */
	struct spec_words image_env;
	int dir_fd;
	struct idrange range;
	struct quota quota;
	struct cgroup cgroup;
	int init_cgroup_fd;
	uint64_t init_cgroup_id;
	struct lowers lowers;
	struct rootfs rootfs;
	struct trust trust;
	struct mounts mounts;
	struct ns ns;
	int root_fd, devpts_fd, netns_fd;
	struct seccomp_program filter;
	int64_t start_ns, created_ns;
	char *id;
	bool is_destroyed, keeps_layer;
	bool is_again; /* made over uppers that were there: they stay whatever becomes of it */
	pthread_mutex_t
		freeze_lock; /* of what follows: the observer freezes by a thread of its own */
	unsigned frozen;     /* SANDBOX_FREEZE_* */
	char *notice;        /* NULL: nothing to say */
};

#endif
