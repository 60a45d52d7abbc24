/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an address is one of this host's own: services of the host listen there. */
#ifndef GATEWAY_OWN_ADDRESS_H
#define GATEWAY_OWN_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/* A socket to ask the kernel for routes (rtnetlink(7)); -errno. Opened before the gateway is confined: it may make none
 * after. */
int own_address_open(void);

/* As things are now: addresses come and go while a sandbox lives (another network, IPv6 that changes each day). Also
 * true where the kernel does not answer, or with an error that says nothing of the address: better refused than let in. */
bool own_address_is(int route_fd, const uint8_t address[16]);

#endif
