/* SPDX-License-Identifier: Apache-2.0 */
#include "server/role.h"

#include <string.h>

static const char *const roles[] = {[ROLE_NONE] = "none",
	[ROLE_AUDITOR] = "auditor",
	[ROLE_MEMBER] = "member",
	[ROLE_ADMIN] = "admin"};

const char *role_name(enum role role)
{
	return roles[role];
}

enum role role_find(const char *name)
{
	for (int i = ROLE_AUDITOR; i <= ROLE_ADMIN; i++)
		if (strcmp(roles[i], name) == 0)
			return (enum role)i;
	return ROLE_NONE;
}
