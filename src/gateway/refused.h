/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's list of destinations whose connect() and sendto() fail at once with EACCES: filled with what the rules
 * refused once. It makes refusals quick and clear and enforces nothing. */
#ifndef GATEWAY_REFUSED_H
#define GATEWAY_REFUSED_H

#include <stdint.h>

#include "util/scoped.h"

struct refused;

struct refused *refused_new(int map_fd); /* the descriptor stays the caller's */
void refused_free(struct refused *refused);
SCOPED_TYPE(refused)

void refused_add(
	struct refused *refused, const uint8_t address[16], uint16_t port, uint16_t protocol);
/* The address was given out for a name: what leads there is looked at anew. */
void refused_forget(struct refused *refused, const uint8_t address[16]);
void refused_clear(struct refused *refused); /* the rules have changed */

#endif
