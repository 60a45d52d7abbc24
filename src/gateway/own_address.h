/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of this host, as they are when the gateway starts: services of the host listen there. */
#ifndef GATEWAY_OWN_ADDRESS_H
#define GATEWAY_OWN_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

#include "gateway/policy.h"

#define OWN_ADDRESS_MAX 256

struct own_address {
	uint8_t list[OWN_ADDRESS_MAX][16];
	size_t n;
};

/* Before confine_enter(): it asks by a socket that is not allowed later. Nothing where the kernel does not say. */
void own_address_read(struct own_address *own);
void own_address_add(const struct own_address *own, struct policy *policy);

#endif
