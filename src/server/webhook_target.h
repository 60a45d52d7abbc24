/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an address may be told anything by a webhook: asked with the very address that is about to be connected to, so that
 * no name can lead elsewhere after it was checked. */
#ifndef SERVER_WEBHOOK_TARGET_H
#define SERVER_WEBHOOK_TARGET_H

#include <sys/socket.h>

/* NULL where it is public and not one of this host's own; else what it is: "a private address". */
const char *webhook_target_refuses(const struct sockaddr *address, socklen_t len);

#endif
