/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/ledger.h"

#include <errno.h>
#include <string.h>

#include "launcher/chain.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/utf8.h"

static struct chain chain_of(const char *state_dir)
{
	return (struct chain){.dir = state_dir, .name = "ledger.jsonl", .what = "the ledger"};
}

static void add_text(struct jsonw *j, const char *key, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (text)
		jsonw_kslice(j, key,
			(struct slice){.p = text, .len = utf8_cut(text, len, CHAIN_TEXT_MAX)});
}

static void write_members(const struct ledger_line *line, struct str *out)
{
	struct jsonw j = jsonw_to(out);
	char at[CLOCK_TEXT_LEN];

	clock_format(line->at_ms ? line->at_ms : clock_wall_ms(), at);
	jsonw_object(&j);
	jsonw_ktext(&j, "at", at);
	add_text(&j, "act", line->act);
	add_text(&j, "sandbox", line->sandbox);
	jsonw_kint(&j, "owner", line->owner);
	if (line->head) {
		jsonw_kint(&j, "seq", (int64_t)line->seq);
		add_text(&j, "head", line->head);
	}
	add_text(&j, "actor", line->actor);
	add_text(&j, "detail", line->detail);
	jsonw_object_end(&j);
}

int ledger_append(const char *state_dir, const struct ledger_line *line, struct err *err)
{
	const struct chain chain = chain_of(state_dir);
	scoped_str struct str members = {0};
	bool is_removal = strncmp(line->act, "remove", 6) == 0;

	write_members(line, &members);
	return chain_append(&chain, str_slice(&members), is_removal, NULL, err);
}

struct walk {
	int (*on_line)(void *ctx, const struct ledger_line *line);
	void *ctx;
};

static const char *member(const json_t *root, const char *key)
{
	return json_string_value(json_object_get(root, key));
}

static int give_line(void *ctx, const json_t *root)
{
	const struct walk *walk = ctx;
	struct ledger_line line = {.act = member(root, "act"),
		.sandbox = member(root, "sandbox"),
		.head = member(root, "head"),
		.actor = member(root, "actor"),
		.detail = member(root, "detail"),
		.seq = (uint64_t)json_integer_value(json_object_get(root, "seq")),
		.owner = (uid_t)json_integer_value(json_object_get(root, "owner"))};
	const char *at = member(root, "at");

	if (!line.act || !line.sandbox || !at || clock_parse(at, &line.at_ms) < 0)
		return -EBADMSG;
	return walk->on_line(walk->ctx, &line);
}

int ledger_walk(const char *state_dir, int (*on_line)(void *ctx, const struct ledger_line *line),
	void *ctx, struct err *err)
{
	const struct chain chain = chain_of(state_dir);
	struct walk walk = {.on_line = on_line, .ctx = ctx};

	return chain_walk(&chain, give_line, &walk, err);
}

struct act_search {
	const char *sandbox, *act;
};

static int on_act(void *ctx, const struct ledger_line *line)
{
	const struct act_search *search = ctx;

	return strcmp(line->sandbox, search->sandbox) == 0 && strcmp(line->act, search->act) == 0;
}

int ledger_has_act(const char *state_dir, const char *sandbox, const char *act)
{
	struct act_search search = {.sandbox = sandbox, .act = act};

	return ledger_walk(state_dir, on_act, &search, NULL);
}

struct head_search {
	const char *sandbox;
	char *head;
	uint64_t seq;
	bool found;
};

static int on_head(void *ctx, const struct ledger_line *line)
{
	struct head_search *search = ctx;

	if (!line->head || strcmp(line->sandbox, search->sandbox) != 0 || line->seq < search->seq)
		return 0;
	memccpy(search->head, line->head, '\0', LEDGER_HEAD_SIZE);
	search->head[LEDGER_HEAD_SIZE - 1] = '\0';
	search->seq = line->seq;
	search->found = true;
	return 0;
}

int ledger_find_head(const char *state_dir, const char *sandbox, char ret_head[LEDGER_HEAD_SIZE],
	uint64_t *ret_seq, struct err *err)
{
	struct head_search search = {.sandbox = sandbox, .head = ret_head};
	int r = ledger_walk(state_dir, on_head, &search, err);

	if (r < 0)
		return r;
	*ret_seq = search.seq;
	return search.found ? 0 : -ENOENT;
}
