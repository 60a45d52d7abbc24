/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a running sandbox: told in its record, changed on request. */
#ifndef SUPERVISOR_NETWORK_RULES_H
#define SUPERVISOR_NETWORK_RULES_H

#include <jansson.h>

#include "supervisor/supervisor_internal.h"

/* net.rules: what is in force from here on. actor may be NULL. */
void network_rules_say(struct supervisor *sup, const char *actor);

/* The request "net-rules". Members, all may miss: "net" ("open" or "allow"), "reset" (first back to what was asked at
 * creation), "replace" (the lists that are there replace instead of being added), "allow", "deny", "remove" (rules that
 * go from both), "sets", "actor". Nothing of it holds where it is refused with a sentence. Adds {"network":{...}}, the
 * rules as they are then, to out. */
int network_rules_request(
	struct supervisor *sup, const json_t *body, struct str *out, struct err *err);

/* Whether such a request is more than a look. */
bool network_rules_is_change(const json_t *body);

/* One more rule to allow, in force at once. */
int network_rules_allow(
	struct supervisor *sup, const char *rule, const char *actor, struct err *err);

#endif
