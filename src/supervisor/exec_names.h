/* SPDX-License-Identifier: Apache-2.0 */
/* Which exec a group of processes is or was. The ones that have ended are known for a while: what their connections
 * did is told when these are over. */
#ifndef SUPERVISOR_EXEC_NAMES_H
#define SUPERVISOR_EXEC_NAMES_H

#include <stdint.h>

#include "util/scoped.h"

struct exec_names;

struct exec_names *exec_names_new(void);
void exec_names_free(struct exec_names *names);
SCOPED_TYPE(exec_names)

void exec_names_add(struct exec_names *names, uint64_t cgroup, const char *exec_id);
/* Nothing runs in it any more: forgotten once EXEC_NAMES_ENDED others have ended after it. */
#define EXEC_NAMES_ENDED 4096
void exec_names_end(struct exec_names *names, uint64_t cgroup);
const char *exec_names_find(const struct exec_names *names, uint64_t cgroup); /* NULL */

#endif
