/* SPDX-License-Identifier: Apache-2.0 */
/* What a key may do, from the least on. */
#ifndef SERVER_ROLE_H
#define SERVER_ROLE_H

enum role {
	ROLE_NONE,
	ROLE_AUDITOR,
	ROLE_MEMBER,
	ROLE_ADMIN,
};
const char *role_name(enum role role); /* "admin" */
enum role role_find(const char *name); /* ROLE_NONE: no role is called so */

#endif
