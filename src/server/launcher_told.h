/* SPDX-License-Identifier: Apache-2.0 */
/* What the launcher tells us, over the socket by which it is asked, and what it wants to hear: that we are ready, and whether a
 * certificate that it read anew is in use. On the loop. */
#ifndef SERVER_LAUNCHER_TOLD_H
#define SERVER_LAUNCHER_TOLD_H

#include "server/listener_tls.h"
#include "server/server.h"

struct launcher_told;

/* tls: what may be renewed; NULL: there is none. Says that we are ready; blocks for that. */
int launcher_told_new(struct server *server, struct listener_tls *tls,
	struct launcher_told **ret_told, struct err *err);
void launcher_told_free(struct launcher_told *told);
SCOPED_TYPE(launcher_told)

#endif
