/* SPDX-License-Identifier: Apache-2.0 */
#include "util/folder_id.h"

#include <fcntl.h>
#include <string.h>
#include <sys/statfs.h>

#include "util/scoped.h"

/* Without gaps, as all of it goes into the digest. */
struct identity {
	__fsid_t fs;
	struct file_handle head;
	unsigned char bytes[MAX_HANDLE_SZ];
};

void folder_id_of(int fd, char ret[FOLDER_ID_SIZE])
{
	struct identity id = {.head.handle_bytes = MAX_HANDLE_SZ};
	struct statfs fs;
	int mount_id;

	ret[0] = '\0';
	if (fstatfs(fd, &fs) < 0 ||
		name_to_handle_at(fd, "", &id.head, &mount_id, AT_EMPTY_PATH) < 0)
		return;
	id.fs = fs.f_fsid;
	digest_of(&id, sizeof(id), ret);
}

void folder_id_at(const char *path, char ret[FOLDER_ID_SIZE])
{
	scoped_fd int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	ret[0] = '\0';
	if (fd >= 0)
		folder_id_of(fd, ret);
}

bool folder_id_differs(const char *one, const char *other)
{
	return one && other && one[0] && other[0] && strcmp(one, other) != 0;
}
