/* SPDX-License-Identifier: Apache-2.0 */
/* Hands out ranges of 65,536 host ids, one per living sandbox: a locked file each in <state>/ids.
 * The lock dies with its holder, so that a range is never lost; what /etc/subuid and /etc/subgid give to
 * others is passed over. CLOCHE_ID_BASE moves the first range. */
#ifndef SANDBOX_IDRANGE_H
#define SANDBOX_IDRANGE_H

#include <stdint.h>

#include "util/err.h"

#define IDRANGE_LEN 65536u
/* Above what systemd uses for containers, below 2^31: nobody's by convention. */
#define IDRANGE_BASE 1879048192u
#define IDRANGE_MAX  4096u

struct idrange {
	uint32_t base; /* first id */
	int lock_fd;   /* -1: not held */
	uint32_t slot;
	uint32_t
		gateway; /* one id more, of no sandbox's range: for the program its network goes through */
};

/* Takes a free range for the sandbox named id. */
int idrange_open(struct idrange *range, const char *state_dir, const char *id, struct err *err);
void idrange_close(struct idrange *range, const char *state_dir);
/* Lets go of it so that nobody but the sandbox named id gets it, until idrange_clean(). */
int idrange_keep(struct idrange *range, const char *id);
/* Takes back what idrange_keep() kept, or a free one at the same base. -EBUSY where another has it. */
int idrange_open_again(struct idrange *range, const char *state_dir, const char *id, uint32_t base,
	struct err *err);
/* Removes the file of a dead sandbox's range, or of one that was kept. */
void idrange_clean(const char *state_dir, const char *id);

/* The range that owns what is in shared layers of images, chosen once for a state and never a sandbox's: its first id,
 * kept in <state>/layers/base, a folder that exists. */
int idrange_for_layers(const char *state_dir, uint32_t *ret_base, struct err *err);

/* Whether lines in the format of subuid(5) give away any of the range. Pure. */
int idrange_is_given(const char *subids, uint32_t base);

#endif
