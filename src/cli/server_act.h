/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of a control plane alone: each has acts, such as `keys create`. Nothing here is done by this program: src/remote does. */
#ifndef CLI_SERVER_ACT_H
#define CLI_SERVER_ACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spec/spec.h"
#include "util/err.h"

/* What their options fill; each verb has some. Zero: not given. */
struct server_options {
	const char *name, *role, *account, *sandbox, *file, *since, *until; /* borrowed */
	int64_t rate_limit, max_sandboxes, max_execs, limit;
	struct spec_words hosts, events;
	bool plain, follow;
};
void server_act_done(void *options); /* for a verb's row */

struct server_act {
	const char *name; /* NULL ends a list; the first is that without a name */
	const char *args; /* "ID..." */
	size_t min, max;  /* arguments behind the name */
	bool takes_options;
};

/* The act that args name, and how many of them are its name; NULL: none. */
const struct server_act *server_act_find(
	const struct server_act *acts, char **args, size_t n_args, size_t *ret_n);
/* Usage: an act with its arguments, and options only where it takes some. */
int server_act_check(const struct server_act *acts, const struct server_options *o, char **args,
	size_t n_args, struct err *err);

extern const struct server_act server_act_accounts[], server_act_audit[], server_act_keys[],
	server_act_secrets[], server_act_webhooks[];

#endif
