/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the kernel half for one sandbox: a set of maps and programs of its own, held by descriptors, so that nothing of
 * it outlives who holds them. bpf(2). */
#ifndef NETCATCH_NETCATCH_LOAD_H
#define NETCATCH_NETCATCH_LOAD_H

#include "netcatch/netcatch_fields.h"
#include "netcatch/netcatch_maps.h"
#include "util/err.h"

enum netcatch_map {
#define NETCATCH_MAP_ENUM(name, type, flags, key, value, max) NETCATCH_MAP_##name,
	NETCATCH_MAPS(NETCATCH_MAP_ENUM)
#undef NETCATCH_MAP_ENUM
		NETCATCH_N_MAPS
};

enum netcatch_program {
#define NETCATCH_PROGRAM_ENUM(name, type, attach) NETCATCH_PROGRAM_##name,
	NETCATCH_PROGRAMS(NETCATCH_PROGRAM_ENUM)
#undef NETCATCH_PROGRAM_ENUM
		NETCATCH_N_PROGRAMS
};

struct netcatch_object {
	int maps[NETCATCH_N_MAPS]; /* -1: not there, here and below */
	int programs[NETCATCH_N_PROGRAMS];
	int links[NETCATCH_N_PROGRAMS];
};

void netcatch_object_init(struct netcatch_object *object);
void netcatch_object_done(struct netcatch_object *object); /* closes all of it */

/* Programs as bits: what catches, what tells whose it is. */
#define NETCATCH_CATCH (1u << NETCATCH_PROGRAM_lookup | 1u << NETCATCH_PROGRAM_hold)
#define NETCATCH_HOOKS \
	(1u << NETCATCH_PROGRAM_connect4 | 1u << NETCATCH_PROGRAM_connect6 | \
		1u << NETCATCH_PROGRAM_egress | 1u << NETCATCH_PROGRAM_listen)

int netcatch_load_maps(struct netcatch_object *object, struct err *err);
int netcatch_load(struct netcatch_object *object, const struct netcatch_fields *fields,
	unsigned which, struct err *err);
/* Ties the programs to the network namespace and to the group. The hold filter is a socket's: not tied here. */
int netcatch_attach(struct netcatch_object *object, unsigned which, int netns_fd, int cgroup_fd,
	struct err *err);

#endif
