/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/own_address.h"

#include <ifaddrs.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/flow_head.h"

void own_address_read(struct own_address *own)
{
	struct ifaddrs *all = NULL;
	struct sockaddr_storage address;
	uint16_t port;

	if (getifaddrs(&all) < 0)
		return; /* private ones are refused all the same */
	for (struct ifaddrs *a = all; a && own->n < OWN_ADDRESS_MAX; a = a->ifa_next) {
		if (!a->ifa_addr ||
			(a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6))
			continue;
		memset(&address, 0, sizeof(address));
		memcpy(&address, a->ifa_addr,
			a->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							  : sizeof(struct sockaddr_in6));
		flow_from_sockaddr(&address, own->list[own->n++], &port);
	}
	freeifaddrs(all);
}

void own_address_add(const struct own_address *own, struct policy *policy)
{
	for (size_t i = 0; i < own->n; i++)
		policy_add_own(policy, own->list[i]);
}
