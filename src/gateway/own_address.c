/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/own_address.h"

#include <string.h>
#include <sys/socket.h>

#include "gateway/flow_head.h"
#include "util/scoped.h"

#define DISCARD_PORT 9

/* What this host sends to itself it sends from the same address; what it sends elsewhere never. A datagram socket tells
 * what would be the sender. */
bool own_address_is(const uint8_t address[16])
{
	struct sockaddr_storage to, own = {0};
	socklen_t len = flow_sockaddr(address, DISCARD_PORT, &to), own_len = sizeof(own);
	scoped_fd int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint8_t sender[16];
	uint16_t port;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, len) < 0 ||
		getsockname(fd, (struct sockaddr *)&own, &own_len) < 0)
		return false; /* there is no way there */
	flow_from_sockaddr(&own, sender, &port);
	return memcmp(sender, address, sizeof(sender)) == 0;
}
