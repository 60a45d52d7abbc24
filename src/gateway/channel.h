/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's end of the control socket (proto/gateway_wire.h). Frames are gathered and go out at the end of each
 * turn of the loop or when many wait; that write blocks, so that nothing is lost when the supervisor is behind. */
#ifndef GATEWAY_CHANNEL_H
#define GATEWAY_CHANNEL_H

#include <stdint.h>

#include "event/event.h"
#include "gateway/traffic.h"
#include "proto/gateway_wire.h"
#include "util/scoped.h"
#include "util/slice.h"

struct channel;

/* fd stays the caller's. sandbox: the id that stands in each event; copied. start_ns: CLOCK_MONOTONIC when the
 * sandbox's guest_ns was 0. */
struct channel *channel_new(int fd, const char *sandbox, int64_t start_ns);
void channel_free(struct channel *channel);
SCOPED_TYPE(channel)

/* Gives it its guest_ns where that is 0. cgroup: of who caused it; 0: not known. */
void channel_event(struct channel *channel, uint64_t cgroup, struct event *ev);
/* What the flows passed whose ends were told so. */
struct traffic channel_told(const struct channel *channel);
/* All others. */
void channel_frame(struct channel *channel, const struct gateway_frame *frame);
/* Writes what was gathered. -EPIPE and the like: the supervisor is gone. */
int channel_push(struct channel *channel);

/* Reads what is there. 0: all of it was read; -ECONNRESET at the end of file. */
int channel_read(struct channel *channel);
/* The next whole frame of what was read: 1, 0 where there is none yet, -EBADMSG. Good until the next call. */
int channel_next(struct channel *channel, struct gateway_frame *ret_frame);

#endif
