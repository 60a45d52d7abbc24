/* SPDX-License-Identifier: Apache-2.0 */
/* How a sandbox's call reaches the control plane: its supervisor connects to a socket of the launcher's, and the socket that
 * it connects from is bound to a name that says which sandbox's it is. The sockets lie in a folder that is root's alone, one
 * for each control plane of this state: who can connect there is root, so the name is believed.
 *
 *   <state>/inside/in_...    a control plane's; a stale one is removed when the next one starts
 *   @cloche/inside/sb_.../N  where a connection comes from (abstract, N random) */
#ifndef CONTROL_PLANE_SOCKET_H
#define CONTROL_PLANE_SOCKET_H

#include <sys/socket.h>
#include <sys/un.h>

#include "util/err.h"
#include "util/id.h"

/* A new listening socket, which does not block, and its name for plane_socket_remove(). */
int plane_socket_listen(const char *state_dir, char ret_name[ID_SIZE], struct err *err);
void plane_socket_remove(const char *state_dir, const char *name);

/* A connection for this sandbox to a control plane that runs, which does not block; the caller's. -ECONNREFUSED:
 * none runs. */
int plane_socket_connect(const char *state_dir, const char *sandbox);

/* Whose connection an accepted one is, by where it comes from. -EINVAL: it is none of these. Pure. */
int plane_socket_caller(const struct sockaddr_un *from, socklen_t len, char ret_sandbox[ID_SIZE]);

#endif
