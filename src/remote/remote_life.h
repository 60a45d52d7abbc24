/* SPDX-License-Identifier: Apache-2.0 */
/* One request about one sandbox. */
#ifndef REMOTE_REMOTE_LIFE_H
#define REMOTE_REMOTE_LIFE_H

#include <jansson.h>

#include "cli/cli.h"
#include "util/id.h"

/* METHOD /v1/sandboxes/ID/act (act NULL: the sandbox itself), with a body (NULL: none). once: it makes something, so it is
 * done once however often it is sent. *ret is the caller's, and NULL where the answer is empty; ret may be NULL. */
struct remote_life_ask {
	const char *method, *id, *act;
	const json_t *body;
	bool once;
};
int remote_life_ask(
	const struct cli *cli, const struct remote_life_ask *ask, json_t **ret, struct err *err);

/* Prints the id of what was made. */
int remote_life_print_id(const struct cli *cli, const json_t *made, struct err *err);

#endif
