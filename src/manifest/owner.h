/* SPDX-License-Identifier: Apache-2.0 */
/* Work on files as somebody else: the thread's file-system ids are his and its capabilities over files are gone, so
 * that what he could not do is not done for him. For programs with one thread. */
#ifndef MANIFEST_OWNER_H
#define MANIFEST_OWNER_H

#include <sys/types.h>

int owner_become(uid_t uid, gid_t gid); /* -EPERM: still ourselves */
void owner_leave(void);                 /* ourselves again; keeps errno */

#endif
