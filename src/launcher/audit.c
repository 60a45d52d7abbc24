/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/audit.h"

#include <errno.h>
#include <string.h>

#include "launcher/chain.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/utf8.h"

static struct chain chain_of(const char *state_dir)
{
	return (struct chain){.dir = state_dir, .name = "audit.jsonl", .what = "the audit journal"};
}

static void add_text(struct jsonw *j, const char *key, const json_t *line)
{
	const char *text = json_string_value(json_object_get(line, key));
	size_t len = text ? strlen(text) : 0;

	if (text)
		jsonw_kslice(j, key,
			(struct slice){.p = text, .len = utf8_cut(text, len, CHAIN_TEXT_MAX)});
}

int audit_append(const char *state_dir, const json_t *line, struct str *ret_line, struct err *err)
{
	static const char *const keys[] = {
		"account", "actor", "origin", "act", "object", "sandbox", "detail"};
	const struct chain chain = chain_of(state_dir);
	scoped_str struct str members = {0};
	struct jsonw j = jsonw_to(&members);
	char at[CLOCK_TEXT_LEN];

	if (!json_is_string(json_object_get(line, "act")))
		return err_set(err, -EINVAL, "an audit line needs an act");
	clock_format(clock_wall_ms(), at);
	jsonw_object(&j);
	jsonw_ktext(&j, "at", at);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		add_text(&j, keys[i], line);
	jsonw_object_end(&j);
	return chain_append(&chain, str_slice(&members), true, ret_line, err);
}

int audit_open(const char *state_dir, struct err *err)
{
	const struct chain chain = chain_of(state_dir);

	return chain_open(&chain, err);
}

int audit_walk(const char *state_dir, int (*on_line)(void *ctx, const json_t *line), void *ctx,
	struct err *err)
{
	const struct chain chain = chain_of(state_dir);

	return chain_walk(&chain, on_line, ctx, err);
}
