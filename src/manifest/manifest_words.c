/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/stat.h>

#include "manifest/manifest_words.h"

const char *manifest_type_word(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "link";
	case S_IFIFO:
		return "pipe";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
	case S_IFBLK:
		return "device";
	default:
		return "file";
	}
}

const char *manifest_problem_word(enum tree_problem problem)
{
	static const char *const words[TREE_N_PROBLEMS] = {
		[TREE_CHANGED] = "changed",
		[TREE_HOLES] = "holes",
		[TREE_UNREADABLE] = "unreadable",
		[TREE_MOUNT] = "mount",
		[TREE_SKIPPED] = "skipped",
	};

	return words[problem];
}

void manifest_owner_text(uint32_t uid, uint32_t gid, char ret[MANIFEST_OWNER_SIZE])
{
	(void)snprintf(ret, MANIFEST_OWNER_SIZE, "%u:%u", uid, gid);
}

void manifest_write_mode(struct jsonw *j, const char *key, mode_t mode)
{
	char text[8];

	(void)snprintf(text, sizeof(text), "%04o", mode & 07777U);
	jsonw_ktext(j, key, text);
}

void manifest_write_owner(struct jsonw *j, const char *key, uint32_t uid, uint32_t gid)
{
	char text[MANIFEST_OWNER_SIZE];

	manifest_owner_text(uid, gid, text);
	jsonw_ktext(j, key, text);
}
