/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel half as it stands on a host: loaded once, pinned under the hash of its object, attached while
 * anybody is traced.
 *
 * Beside the pins lies a lock file. Its flock() is held by whoever changes pins; its byte N is locked
 * (fcntl, open file description) by the user of slot N, so that a slot is free again when its user dies. */
#ifndef OBSERVER_PROGRAMS_H
#define OBSERVER_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "observer/wire.h"
#include "util/err.h"
#include "util/ring.h"

struct programs {
	char *dir;  /* of the pins */
	char *root; /* of our bpffs */
	int lock_fd;
	int groups_fd, slots_fd, rings_fd, namespaces_fd, opens_fd, attachment_fd;
	int look_fd;             /* the program that looks at open files */
	int slot;                /* -1: none */
	struct wire_slot *state; /* of the slot, mapped */
};

/* The kernel half can be had here: 0, or why not. */
int programs_probe(struct err *err);

/* Loads and attaches where that was not done, and takes a slot. programs_close() whatever it returned. */
int programs_open(const char *pin_dir, struct programs *programs, struct err *err);
void programs_close(struct programs *programs);

/* Opens the maps without attaching or taking a slot, and holds the lock: for salvage. -ENOENT where
 * nothing was ever pinned. */
int programs_look(const char *pin_dir, struct programs *programs, struct err *err);

/* Puts a ring into the slot, or takes it out (ring_fd -1). It is there when this returns, but programs may
 * use the one before for a while. */
int programs_set_ring(struct programs *programs, int ring_fd, struct err *err);

/* Makes a ring, pins it and puts it into the slot, all on another thread. is_done turns true when no program
 * uses the one before any more; ring is the new one then, the caller's, or NULL where it could not be had and
 * the one before stays. The swap must live until then. */
struct programs_swap {
	bool is_done;
	struct ring *ring;
};
void programs_start_swap(
	struct programs *programs, const char *id, int n, size_t bytes, struct programs_swap *swap);
bool programs_is_swapped(const struct programs_swap *swap);

/* A ring outlives its reader by its pin. */
int programs_pin_ring(
	const struct programs *programs, const char *id, int n, int ring_fd, struct err *err);
int programs_get_ring(
	const struct programs *programs, const char *id, int n); /* a descriptor; -ENOENT */
void programs_unpin_rings(const struct programs *programs, const char *id);
#define PROGRAMS_RINGS_MAX 2 /* the small one and the big one */

/* Forgets the files of a slot that are counted; returns how many of them were not told to be closed. */
size_t programs_clear_opens(const struct programs *programs, uint32_t slot);
/* Removes all groups and namespaces of a slot, its files, its ring and its name: its user is dead. */
void programs_free_slot(const struct programs *programs, uint32_t slot);

#endif
