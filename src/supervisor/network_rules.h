/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a sandbox's network while it runs: asked for, replaced, told. */
#ifndef SUPERVISOR_NETWORK_RULES_H
#define SUPERVISOR_NETWORK_RULES_H

#include <jansson.h>

#include "supervisor/supervisor_internal.h"

/* A request {"allow":[],"deny":[],"sets":{},"reset":bool,"actor":text}: adds to the rules there are, or with reset replaces
 * them; without any of the first four it only asks. Adds {"network":{...}}, the rules as they are then, to out. What is
 * refused changes nothing. */
int network_rules_request(
	struct supervisor *sup, const json_t *body, struct str *out, struct err *err);
/* Adds one rule to those that allow. */
int network_rules_allow(
	struct supervisor *sup, const char *rule, const char *actor, struct err *err);
/* net.rules: what is in force. actor may be NULL. */
void network_rules_say(struct supervisor *sup, const char *actor);

#endif
