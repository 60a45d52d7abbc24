/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an address is one of this host's own: services of the host listen there. */
#ifndef GATEWAY_OWN_ADDRESS_H
#define GATEWAY_OWN_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/* As things are now: addresses come and go while a sandbox lives (another network, IPv6 that changes each day). Asks the
 * host's routes, and sends nothing. */
bool own_address_is(const uint8_t address[16]);

#endif
