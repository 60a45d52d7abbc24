/* SPDX-License-Identifier: Apache-2.0 */
/* Where fields lie in this kernel's structures, for programs that are loaded too often to be fitted to it each time. */
#ifndef NETCATCH_NETCATCH_FIELDS_H
#define NETCATCH_NETCATCH_FIELDS_H

#include <stdint.h>

#include "netcatch/netcatch_maps.h"

enum netcatch_number {
#define NETCATCH_NUMBER_ENUM(name) NETCATCH_NUMBER_##name,
	NETCATCH_NUMBERS(NETCATCH_NUMBER_ENUM)
#undef NETCATCH_NUMBER_ENUM
		NETCATCH_N_NUMBERS
};

struct netcatch_fields {
	uint32_t numbers[NETCATCH_N_NUMBERS];
};

/* From the kernel's own type information (some 30 ms), or from `cache`, a file in which they are kept beside what names
 * this build of the kernel. All 0 where the kernel tells nothing: programs do without then. */
void netcatch_fields_get(const char *cache, struct netcatch_fields *ret_fields);

#endif
