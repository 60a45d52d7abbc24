/* SPDX-License-Identifier: Apache-2.0 */
/* What can be told of a sandbox without reading its events: from its record's meta and seal, and from its
 * supervisor where it lives. */
#ifndef CLI_SANDBOX_STATE_H
#define CLI_SANDBOX_STATE_H

#include <jansson.h>

#include "cli/cli.h"
#include "cli/records.h"

struct sandbox_state {
	struct record_entry entry;
	json_t *meta, *seal; /* NULL: none, or not to be read */
	json_t *status; /* the supervisor's answer; NULL: no supervisor, or none that we may ask */
	const char *state; /* "running", "paused", "suspended", "kept", "ended", "cut" */
	bool is_live;
};

int sandbox_state_read(const struct cli *cli, const struct record_entry *entry,
	struct sandbox_state *ret_state, struct err *err);
void sandbox_state_done(struct sandbox_state *state);

/* Text and objects of meta.json and the spec in it; NULL where missing. */
const char *sandbox_state_meta(const struct sandbox_state *state, const char *key);
const char *sandbox_state_spec(const struct sandbox_state *state, const char *key);
const json_t *sandbox_state_labels(const struct sandbox_state *state);

#endif
