/* SPDX-License-Identifier: Apache-2.0 */
/* What the first process of a sandbox does between its clone and becoming pid 1: arranges the mounts as seen
 * from inside, gives up every right, executes the init program. */
#ifndef SANDBOX_BOOT_H
#define SANDBOX_BOOT_H

#include <stdbool.h>
#include <stddef.h>

#include "sandbox/seccomp.h"
#include "util/err.h"

#define BOOT_MAX_MOUNTS 128

/* A mount the parent makes while this runs; its descriptor comes with the go. */
struct boot_mount {
	const char *guest; /* absolute */
	bool is_folder;
};

/* A place below one of the mounts that is there but cannot be opened. */
struct boot_hide {
	size_t mount;     /* index into mounts */
	const char *path; /* relative to it */
	bool is_folder;
};

struct boot {
	int parent_pidfd;
	int go_fd;     /* read: see enum boot_fd */
	int report_fd; /* written: struct boot_report */
	int init_fd;
	const struct boot_mount *layers; /* [0] is the root; the others lie on folders of it */
	size_t n_layers;
	const struct boot_mount *mounts; /* parents before children */
	size_t n_mounts;
	const struct boot_hide *hides;
	size_t n_hides;
	const char *workdir; /* a folder that is there too; NULL: none */
	const struct sock_fprog *filter;
};

/* What the parent hands over, in three messages of ints, each as soon as it is there: one word once the ids are
 * mapped; the first BOOT_REST descriptors; the layers beyond the root and the mounts, in order. */
enum boot_fd {
	BOOT_ROOT,
	BOOT_DEV,
	BOOT_SHM,
	BOOT_HIDE, /* -1 where nothing is hidden */
	BOOT_REST,
};
#define BOOT_MAX_FDS (BOOT_REST + 16 + BOOT_MAX_MOUNTS)

struct boot_report {
	int r;         /* 0, or a negative errno with a sentence */
	int devpts_fd; /* in the table shared with the parent */
	struct err err;
};

/* Shares the parent's descriptors (CLONE_FILES) until it is ready. */
void boot_run(const struct boot *boot) __attribute__((noreturn));

#endif
