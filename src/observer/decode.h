/* SPDX-License-Identifier: Apache-2.0 */
/* Wire records to events: pure, no system calls. Trusts no length in a record; what is malformed gives
 * -EBADMSG and counts as lost.
 *
 * Where a name was read from a program's memory, links in its folders are still to be followed: the event
 * comes without its path fields and the names beside it say what to do (resolve.h). */
#ifndef OBSERVER_DECODE_H
#define OBSERVER_DECODE_H

#include <stdint.h>

#include "event/event.h"
#include "observer/wire.h"
#include "util/scoped.h"

/* One name of a file. */
struct decode_name {
	enum event_field field; /* path, from, to, target: where it goes */
	struct slice base;      /* the folder it counts from, or the file itself */
	struct slice text; /* as the program passed it; p is NULL where base is the whole path */
	bool follow;       /* a link at its end is followed */
	bool cut;          /* base does not begin at the root */
};

/* What can be checked of a name when the program may have lied or changed it. */
enum decode_claim {
	DECODE_CLAIM_NONE,
	DECODE_CLAIM_GONE,   /* names[0] is not there now */
	DECODE_CLAIM_MOVED,  /* names[0] is gone, names[1] is there */
	DECODE_CLAIM_EXISTS, /* the last name is there now */
};

#define DECODE_EVENTS_MAX 3 /* of one record */
#define DECODE_NAMES_MAX  2

struct decoded {
	struct event ev;
	struct decode_name names[DECODE_NAMES_MAX];
	size_t n_names;
	enum decode_claim claim;
	bool doubtful; /* the program had the means to make the record wrong: check the claim */
	bool unstable; /* somebody changed a name while it was read */
	bool made_up;  /* by a call filter of its own: results, too */
};

/* What all of one record's events have in common. */
struct decode_head {
	uint32_t exec; /* 0: none */
	uint32_t lost; /* running count of the slot */
	uint32_t pid, host_pid;
	uint64_t ns;
	/* Of a file on a watched mount: as struct wire_call has them, 0 for none. */
	uint64_t file, inode;
	const struct wire_closed *closed; /* or NULL: the record is one, and has no event */
};

struct decode;

/* id_base: the host's number for uid 0 inside; start_ns: CLOCK_MONOTONIC at guest_ns 0. */
struct decode *decode_new(int64_t start_ns, uint32_t id_base);
void decode_free(struct decode *decode);
SCOPED_TYPE(decode)

/* Returns how many events the record holds (0: part of one that follows, or nothing worth telling), or
 * -EBADMSG. They are good until the next call. */
int decode_record(
	struct decode *decode, const void *record, size_t len, struct decode_head *ret_head);
struct decoded *decode_get(struct decode *decode, size_t i);

#endif
