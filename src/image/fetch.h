/* SPDX-License-Identifier: Apache-2.0 */
/* Gets an image from a registry by skopeo, as the one who asked (his are the credentials), without any capability, in
 * a mount namespace where /var/tmp is the folder to fill. */
#ifndef IMAGE_FETCH_H
#define IMAGE_FETCH_H

#include <stdint.h>
#include <sys/types.h>

#include "util/err.h"

#define FETCH_FOLDER "image" /* in the folder: its transport "dir" */

struct fetch {
	const char *place;  /* "docker://..." */
	const char *folder; /* absolute, to be his meanwhile */
	int folder_fd;
	uid_t uid;
	gid_t gid;
	uint64_t bytes_max; /* of what comes */
};

int fetch_run(const struct fetch *fetch, struct err *err);

#endif
