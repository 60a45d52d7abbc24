/* SPDX-License-Identifier: Apache-2.0 */
/* Who a command runs as: a name or uid, either with ":" and a group's name or gid behind it, looked up in the sandbox's own /etc/passwd and group. */
#ifndef SANDBOX_USER_H
#define SANDBOX_USER_H

#include <stddef.h>
#include <stdint.h>

#include "util/err.h"

#define USER_MAX_GROUPS 64
#define USER_NAME_LEN   64
#define USER_HOME_LEN   512

struct user {
	uint32_t uid, gid;
	uint32_t groups[USER_MAX_GROUPS];
	size_t n_groups;
	char name[USER_NAME_LEN];
	char home[USER_HOME_LEN];
};

/* text NULL: root. The files are read beneath root_fd, never through links that lead elsewhere. */
int user_find(struct user *ret_user, const char *text, int root_fd, struct err *err);

/* One line of passwd(5) whose name or uid is asked for; 1 when found. Pure. */
int user_parse_passwd(const char *passwd, const char *name, uint32_t uid, struct user *ret_user);

#endif
