/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes inside opened TLS whose protocol nobody has named: looks at the first ones of the program, then hands over to
 * a machine for HTTP, or passes everything on as it is. A server that speaks first speaks something else. */
#ifndef GATEWAY_PLAIN_MACHINE_H
#define GATEWAY_PLAIN_MACHINE_H

#include "gateway/http_machine.h"
#include "gateway/machine.h"

/* may_pass: whether what is no HTTP is passed on; else it is an error (-EACCES). Copies the setup. */
void plain_machine_new(const struct http_setup *setup, bool may_pass, struct machine *ret_machine);

#endif
