/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to the control plane. It knows a sandbox by the socket that it is called over, so the supervisor makes each, on
 * request, and hands it in here: this process opens no Unix socket and says nobody's name. */
#ifndef GATEWAY_PLANE_H
#define GATEWAY_PLANE_H

#include "util/err.h"

struct dial;
struct gateway;
struct plane;

/* Where the supervisor gave a socket to ask by. */
int plane_open(struct gateway *gw, struct plane **ret_plane, struct err *err);
void plane_free(struct plane *plane); /* dials that wait are over before */

/* Asks for one: dial_adopt() is called later, unless plane_cancel() was before. A negative errno where it cannot be asked. */
int plane_ask(struct plane *plane, struct dial *dial);
void plane_cancel(struct dial *dial); /* also one that does not wait */

#endif
