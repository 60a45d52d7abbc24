/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox_state.h"

#include <errno.h>

#include "cli/at_rest.h"
#include "control/client.h"

static json_t *parse(struct slice text)
{
	return text.len ? json_loadb(text.p, text.len, JSON_ALLOW_NUL, NULL) : NULL;
}

static json_t *ask(const struct cli *cli, const char *id)
{
	scoped(client) struct client *client = NULL;
	json_t *answer = NULL;

	if (client_connect(cli->state_dir, id, &client, NULL) < 0)
		return NULL;
	return client_ask(client, "status", slice_of(""), &answer, NULL) < 0 ? NULL : answer;
}

static const char *state_of(
	const struct cli *cli, const struct sandbox_state *s, const struct reader *reader)
{
	const char *told = json_string_value(json_object_get(s->status, "state"));

	if (told)
		return strcmp(told, "paused") == 0 ? "paused" : "running";
	if (s->is_live)
		return "running";
	if (reader_is_suspended(reader))
		return "suspended";
	if (at_rest_is(cli, s->entry.id))
		return "kept";
	return reader_is_cut(reader) ? "cut" : "ended";
}

int sandbox_state_read(const struct cli *cli, const struct record_entry *entry,
	struct sandbox_state *ret_state, struct err *err)
{
	scoped(reader) struct reader *reader = NULL;
	struct sandbox_state s = {.entry = *entry};
	int r = records_open(cli, entry->id, &reader, err);

	if (r < 0)
		return r;
	s.is_live = reader_is_live(reader);
	if (s.is_live)
		s.status = ask(cli, entry->id);
	s.meta = parse(reader_meta(reader));
	s.seal = parse(reader_seal(reader));
	s.state = state_of(cli, &s, reader);
	*ret_state = s;
	return 0;
}

void sandbox_state_done(struct sandbox_state *state)
{
	json_decref(state->meta);
	json_decref(state->seal);
	json_decref(state->status);
	*state = (struct sandbox_state){0};
}

const char *sandbox_state_meta(const struct sandbox_state *state, const char *key)
{
	return json_string_value(json_object_get(state->meta, key));
}

const char *sandbox_state_spec(const struct sandbox_state *state, const char *key)
{
	return json_string_value(json_object_get(json_object_get(state->meta, "spec"), key));
}

const json_t *sandbox_state_labels(const struct sandbox_state *state)
{
	return json_object_get(json_object_get(state->meta, "spec"), "labels");
}
