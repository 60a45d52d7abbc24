/* SPDX-License-Identifier: Apache-2.0 */
/* How a supervisor and its cloche-gateway talk: descriptors at the start, then frames on a stream socket. A
 * frame is a head of two words in the machine's byte order (bytes of the payload, type), then the payload: both
 * ends are of one build on one machine.
 *
 * The supervisor trusts none of what comes: the gateway reads foreign bytes. */
#ifndef PROTO_GATEWAY_WIRE_H
#define PROTO_GATEWAY_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"
#include "util/str.h"

#define GATEWAY_PUBLISHED_MAX 32 /* published ports of a sandbox */

enum gateway_fd {
	GATEWAY_FD_CONTROL = 3, /* SOCK_STREAM; the gateway's writes block */
	GATEWAY_FD_CONFIG = 4,  /* memfd: JSON */
	GATEWAY_FD_SECRETS = 5, /* memfd: JSON lines; may be closed */
	GATEWAY_FD_TCP = 6,     /* the listener that settled flows reach */
	GATEWAY_FD_UDP4 = 7,
	GATEWAY_FD_UDP6 = 8,
	GATEWAY_FD_DNS4 = 9,
	GATEWAY_FD_DNS6 = 10,
	GATEWAY_FD_RAW4 = 11,
	GATEWAY_FD_RAW6 = 12,
	GATEWAY_FD_FLOWS = 13, /* maps of netcatch_wire.h */
	GATEWAY_FD_OWNERS = 14,
	GATEWAY_FD_RING = 15,
	GATEWAY_FD_REFUSED = 16,
	GATEWAY_FD_NETNS = 17,  /* the sandbox's network namespace */
	GATEWAY_FD_COPIES = 18, /* where rules catch: SYNs, and there are no maps and no ring */
	GATEWAY_FD_FINDER = 19, /* SOCK_SEQPACKET: a netcatch_key goes, a netcatch_found comes */
	GATEWAY_FD_VISITS = 20, /* SOCK_SEQPACKET: a gateway_visit comes, with a descriptor */
	GATEWAY_FD_PLANE = 21,  /* SOCK_SEQPACKET, of struct gateway_plane; may be closed */
	GATEWAY_FD_PROXY =
		22, /* memfd: as of the frame PROXY, where there was one before; may be closed */
	GATEWAY_FD_PUBLISHED =
		23, /* the first of the listeners of published ports, in the spec's order */
	GATEWAY_FD_END = GATEWAY_FD_PUBLISHED + GATEWAY_PUBLISHED_MAX,
};

/* Somebody outside wants to talk to a port inside, over the descriptor that comes with it: one end of a pair of Unix stream
 * sockets, so that whoever has the other end has nothing of the sandbox's network. The gateway first writes one byte to
 * it, 0 or the errno for which the port was not reached, and then passes bytes both ways. */
#define GATEWAY_FROM_SIZE 64
struct gateway_visit {
	uint16_t port;
	char from[GATEWAY_FROM_SIZE]; /* who it is, as net.accept says it: "192.0.2.1:40000" */
};

/* On GATEWAY_FD_PLANE. From the gateway: a connection to the control plane is wanted. Back: the same id, and the
 * connection with it, or why there is none. */
struct gateway_plane {
	uint64_t id;
	int32_t error; /* a positive errno, or 0 */
	uint32_t unused;
};

#define GATEWAY_WIRE_HEAD 8
#define GATEWAY_WIRE_MAX  (65u << 20) /* of one payload: the longest are bodies */

/* X(symbol, number, has an id, what the rest of the payload is) */
#define GATEWAY_FRAMES(X) \
	/* from the gateway */ \
	X(READY, 1, false, NONE) /* confined, reads from now on */ \
	X(EVENT, 2, true, BYTES) /* id: of the owner's cgroup or 0; event_json_write() made it */ \
	X(BLOB, 3, false, BYTES) /* a body that the next events name by its hash, */ \
	X(BLOB_HEAD, 6, false, BYTES) /* of one that is cut, the first bytes, */ \
	X(BLOB_TAIL, 7, false, BYTES) /* and the last ones */ \
	X(FLUSHED, 4, true, NONE)     /* answers FLUSH */ \
	X(ASK, 5, true, BYTES) /* {"host","address","port","protocol","pid"}: hold or not? */ \
	X(BYTES_OUT, 8, true, \
		NONE) /* id: what programs sent by it up to now, of open flows, too, */ \
	X(BYTES_IN, 9, true, NONE) /* and what they got: answer COUNT, and come before FLUSHED */ \
	/* from the supervisor */ \
	X(FLUSH, 16, true, NONE)   /* answered once all that can be read now is in events */ \
	X(RULES, 17, false, BYTES) /* the network object of a spec, instead of the one before */ \
	X(ANSWER, 18, true, FLAG)  /* to ASK: let it through */ \
	X(COUNT, 19, false, NONE) \
	X(PROXY, 20, false, \
		BYTES) /* the upstream proxy of new connections: spec_hidden_write_proxy() */

enum gateway_frame_type {
#define GATEWAY_FRAME_ENUM(symbol, number, has_id, rest) GATEWAY_##symbol = number,
	GATEWAY_FRAMES(GATEWAY_FRAME_ENUM)
#undef GATEWAY_FRAME_ENUM
};

struct gateway_frame {
	enum gateway_frame_type type;
	uint64_t id;       /* where the type has one */
	bool flag;         /* likewise */
	struct slice rest; /* likewise; borrowed */
};

/* Adds one frame. A rest of more than GATEWAY_WIRE_MAX - 8 bytes is a broken invariant. */
void gateway_wire_add(struct str *out, const struct gateway_frame *frame);
/* Takes the first frame of in, which keeps its bytes: the frame's whole size, 0 where it is not there yet,
 * -EBADMSG where it is none (too long, a type that is not known, a payload that does not fit the type). */
long gateway_wire_take(struct slice in, struct gateway_frame *ret_frame);

bool gateway_wire_is_from_gateway(enum gateway_frame_type type);

#endif
