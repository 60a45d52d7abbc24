/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of a sandbox that lives, opened from outside. */
#ifndef CLI_SANDBOX_ROOT_H
#define CLI_SANDBOX_ROOT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "util/id.h"
#include "util/str.h"

struct sandbox_root {
	char id[ID_SIZE];
	int fd;           /* its root, O_PATH */
	int pidfd;        /* readable once it has ended */
	struct str cwd;   /* where a command starts: the first folder mounted, or /workspace */
	uint32_t id_base; /* what the sandbox counts as 0, outside */
};
#define SANDBOX_ROOT_IDS 65536

/* Needs root. -ESRCH, with what to do instead, where the sandbox has ended. */
int sandbox_root_open(
	const struct cli *cli, const char *name, struct sandbox_root *ret_root, struct err *err);
void sandbox_root_done(struct sandbox_root *root);

/* A folder by the sandbox's own path, links as they lead inside; -EXDEV for the kernel's own (proc, sys). Readable. */
int sandbox_root_folder(const struct sandbox_root *root, const char *path, struct err *err);
/* Whether something lies there that is no folder, not even by a link: 0, or -errno with a sentence. */
int sandbox_root_check_file(const struct sandbox_root *root, const char *path, struct err *err);
/* A folder of procfs and the like: what looks like files there may have no end. */
bool sandbox_root_is_kernels(int fd);
bool sandbox_root_has_ended(const struct sandbox_root *root);

#endif
