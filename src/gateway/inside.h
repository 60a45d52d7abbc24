/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that stays in the sandbox's network namespace and makes sockets there: a socket belongs to the namespace
 * of the thread that called socket(), and entering needs rights that the gateway gives up at once. It does nothing
 * else and shares nothing but descriptors. */
#ifndef GATEWAY_INSIDE_H
#define GATEWAY_INSIDE_H

#include "util/err.h"
#include "util/scoped.h"

struct inside;

/* Starts the thread, which has entered the namespace when this returns. Before confine_enter(). */
int inside_open(int netns_fd, struct inside **ret_inside, struct err *err);
void inside_free(struct inside *inside);
SCOPED_TYPE(inside)

/* A socket inside, non-blocking and close-on-exec, the caller's; or a negative errno. Waits for the thread, which
 * takes some ten microseconds. */
int inside_socket(struct inside *inside, int family, int type);

#endif
