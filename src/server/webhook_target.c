/* SPDX-License-Identifier: Apache-2.0 */
#include "server/webhook_target.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "proto/address_range.h"
#include "util/fdio.h"
#include "util/scoped.h"

/* IPv4 as ::ffff:a.b.c.d. False where it is of no kind that is known. */
static bool bytes_of(const struct sockaddr_storage *address, uint8_t ret[16])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

	memset(ret, 0, 16);
	if (address->ss_family == AF_INET6) {
		memcpy(ret, &v6->sin6_addr, 16);
		return true;
	}
	ret[10] = ret[11] = 0xff;
	memcpy(ret + 12, &v4->sin_addr, 4);
	return address->ss_family == AF_INET;
}

/* What leads to this host comes from the address that it goes to. Nothing is sent: a datagram socket is only told where it
 * would. */
static bool is_own(const struct sockaddr_storage *to, socklen_t len, const uint8_t address[16])
{
	scoped_fd int fd = socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage from = {0};
	socklen_t from_len = sizeof(from);
	uint8_t source[16];

	if (fd < 0 || connect(fd, (const struct sockaddr *)to, len) < 0)
		return false; /* no way leads there: the connection will say why */
	if (getsockname(fd, (struct sockaddr *)&from, &from_len) < 0)
		return true;
	return bytes_of(&from, source) && memcmp(source, address, sizeof(source)) == 0;
}

const char *webhook_target_refuses(const struct sockaddr *address, socklen_t len)
{
	struct sockaddr_storage to = {0};
	const struct address_range *range;
	uint8_t bytes[16];

	if (len > sizeof(to))
		return "no internet address";
	memcpy(&to, address, len);
	if (!bytes_of(&to, bytes))
		return "no internet address";
	range = address_range_find(bytes);
	if (range)
		return range->what;
	return is_own(&to, len, bytes) ? "an address of the host itself" : NULL;
}
