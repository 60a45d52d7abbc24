/* SPDX-License-Identifier: Apache-2.0 */
/* How a supervisor and its cloche-gateway talk: descriptors at the start, then frames on a stream socket.
 *
 * A frame is a struct gateway_frame and `length` bytes behind it; numbers in native byte order, since both
 * ends are of one build on one machine. The gateway is not trusted: whoever reads its frames refuses what is
 * longer than GATEWAY_FRAME_MAX or of a type that is not its to send. */
#ifndef PROTO_GATEWAY_WIRE_H
#define PROTO_GATEWAY_WIRE_H

#include <stdint.h>

enum gateway_fd {
	GATEWAY_FD_CONTROL = 3, /* SOCK_STREAM; the gateway's writes block */
	GATEWAY_FD_CONFIG = 4,  /* memfd: JSON */
	GATEWAY_FD_SECRETS = 5, /* memfd: JSON; may be closed */
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
	GATEWAY_FD_NETNS = 17, /* the sandbox's network namespace */
	GATEWAY_FD_END = 18,
};

/* A body of 64 KiB in base64 and headers fit; longer ones go as blobs. */
#define GATEWAY_FRAME_MAX (1u << 20)

struct gateway_frame {
	uint32_t length; /* of what follows this head */
	uint32_t type;   /* enum gateway_frame_type */
};

enum gateway_frame_type {
	/* gateway to supervisor */
	GATEWAY_READY = 1,   /* nothing: confined, and looking at its sockets */
	GATEWAY_EVENT = 2,   /* uint64_t cgroup id (0: not known), then one JSON object */
	GATEWAY_BLOB = 3,    /* bytes to keep under their hash; before the event that names it */
	GATEWAY_FLUSHED = 4, /* uint64_t id */
	GATEWAY_ASK = 5,     /* uint64_t id, then JSON {host, address, port, protocol, pid} */
	/* supervisor to gateway */
	GATEWAY_FLUSH = 16,  /* uint64_t id */
	GATEWAY_RULES = 17,  /* JSON: the network object of a spec */
	GATEWAY_ANSWER = 18, /* uint64_t id, uint8_t allow */
};

#endif
