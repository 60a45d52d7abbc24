/* SPDX-License-Identifier: Apache-2.0 */
/* Drives the observer from the loop: drains while there is something, sleeps when there is not, holds the box
 * when the ring runs full (--on-loss). */
#ifndef SUPERVISOR_TRACING_H
#define SUPERVISOR_TRACING_H

#include "supervisor/supervisor_internal.h"

/* What is watched from before it is there: a mount of the sandbox (sandbox_config.on_mount, ctx the supervisor). */
void tracing_on_mount(void *ctx, int mount_fd, const struct spec_mount *mount);
/* Starts what the spec asks for. Where that cannot be had the sandbox runs on and its record says so from the
 * first event (trace.blind with the reason): never silently less. */
void tracing_start(struct supervisor *sup);
void tracing_stop(struct supervisor *sup); /* the last drain, then detaches */

int tracing_add_cgroup(
	struct supervisor *sup, uint64_t cgroup_id, const char *exec_id, struct err *err);
void tracing_remove_cgroup(struct supervisor *sup, uint64_t cgroup_id);
/* What was done until now, is in the record when this returns true. */
bool tracing_settle(struct supervisor *sup);

#endif
