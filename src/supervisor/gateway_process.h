/* SPDX-License-Identifier: Apache-2.0 */
/* The program cloche-gateway while it runs, from outside: its descriptors, its frames, its end. It reads what is foreign,
 * so nothing it says is believed beyond the form of a frame. */
#ifndef SUPERVISOR_GATEWAY_PROCESS_H
#define SUPERVISOR_GATEWAY_PROCESS_H

#include "proto/gateway_wire.h"
#include "supervisor/loop.h"
#include "util/err.h"

struct gateway_process;

struct gateway_process_config {
	struct loop *loop;
	int fds[GATEWAY_FD_END]; /* by enum gateway_fd, borrowed; -1: not there. CONTROL is made here */
	void (*on_frame)(void *ctx, const struct gateway_frame *frame);
	/* It is gone, by itself; reason is a sentence's end. gateway_process_free() may be called from here. */
	void (*on_end)(void *ctx, const char *reason);
	void *ctx;
};

/* From the main thread: its death is the gateway's, too. The caller owns *ret_gateway. */
int gateway_process_start(const struct gateway_process_config *config,
	struct gateway_process **ret_gateway, struct err *err);
/* Ends it, waiting a short while for it to do that by itself. on_end is not called. */
void gateway_process_free(struct gateway_process *gateway);

/* Lets it end by itself, and handles what it still has to tell: what is open then is over. 0; -ETIMEDOUT where that took
 * longer than deadline_ms. No frame can be sent after this, and on_end is not called. */
int gateway_process_finish(struct gateway_process *gateway, int deadline_ms);

/* Queues a frame; it goes out as the gateway reads. */
void gateway_process_send(struct gateway_process *gateway, const struct gateway_frame *frame);
/* Handles frames until it has said that all which could be read before this call is told. 0; -ETIMEDOUT after deadline_ms;
 * -EPIPE where it died meanwhile: then on_end was called. */
int gateway_process_flush(struct gateway_process *gateway, int deadline_ms);

#endif
