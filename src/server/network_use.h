/* SPDX-License-Identifier: Apache-2.0 */
/* What an account keeps about networks, put to use: in the spec of a new sandbox, and for one that goes on. hidden is what
 * no spec and no record holds, as spec_hidden_read() reads it: handed to the launcher, who passes it on through a
 * descriptor. */
#ifndef SERVER_NETWORK_USE_H
#define SERVER_NETWORK_USE_H

#include <jansson.h>

#include "server/call.h"

/* The account's rules where the spec names none, its upstream proxy where it names none, and the values of the secrets that it
 * names, which go to no other hosts than the account has them for. *ret_hidden is the caller's. */
int network_use_in_spec(struct call *call, json_t *spec, json_t **ret_hidden, struct err *err);
/* Keeps of the spec of a sandbox that was made what it needs to go on later. */
int network_use_keep(struct call *call, const char *sandbox, const json_t *spec, struct err *err);

/* The same values again for a sandbox that was suspended, or whose files another one begins with. */
int network_use_again(struct call *call, const char *sandbox, json_t **ret_hidden, struct err *err);
/* What a proxy's URL holds that nobody may read, into such an object. */
int network_use_hide_proxy(const char *url, json_t *hidden, struct err *err);
/* A fork has its source's proxy. */
int network_use_copy(struct call *call, const char *from, const char *to, struct err *err);

#endif
