/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/blame_acts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/pending.h"
#include "launcher/ledger.h"
#include "manifest/change_set.h"
#include "manifest/journal.h"
#include "util/clock.h"
#include "util/id.h"
#include "util/log.h"
#include "util/mem.h"

/* What was done to a sandbox's changes afterwards. */
struct act {
	char sandbox[ID_SIZE];
	bool is_apply;
	char *detail;
	int64_t at_ms;
};

struct blame_acts {
	struct act *items;
	size_t n, room;
	const char *id; /* borrowed */
	struct change_set *set;
	bool has_set, goes_on; /* the sandbox may change what was dealt with */
};

static int on_ledger_line(void *ctx, const struct ledger_line *line)
{
	struct blame_acts *acts = ctx;
	bool is_apply = strcmp(line->act, "apply") == 0;
	struct act *act;

	if ((!is_apply && strcmp(line->act, "discard") != 0) || !id_is_valid("sb", line->sandbox))
		return 0;
	if (acts->n == acts->room) {
		acts->room = acts->room ? acts->room * 2 : 64;
		acts->items = mem_grow(acts->items, acts->room, sizeof(struct act));
	}
	act = &acts->items[acts->n++];
	*act = (struct act){.is_apply = is_apply,
		.detail = mem_dup(line->detail ? line->detail : ""),
		.at_ms = line->at_ms};
	memcpy(act->sandbox, line->sandbox, ID_SIZE);
	return 0;
}

struct blame_acts *blame_acts_new(const struct cli *cli)
{
	struct blame_acts *acts = new0(struct blame_acts);
	struct err ignored = {0};

	/* Not a user's to read; without it, what was applied is not said. */
	(void)ledger_walk(cli->state_dir, on_ledger_line, acts, &ignored);
	return acts;
}

void blame_acts_free(struct blame_acts *acts)
{
	if (!acts)
		return;
	for (size_t i = 0; i < acts->n; i++)
		free(acts->items[i].detail);
	free(acts->items);
	change_set_free(acts->set);
	free(acts);
}

void blame_acts_open(struct blame_acts *acts, const struct cli *cli, const char *id)
{
	scoped_mem char *set = mem_printf("%s/changes/%s", cli->state_dir, id);
	scoped_mem char *sandbox = mem_printf("%s/sandboxes/%s", cli->state_dir, id);

	change_set_free(acts->set);
	acts->set = NULL;
	acts->id = id;
	acts->has_set = access(set, F_OK) == 0 || errno != ENOENT;
	acts->goes_on = access(sandbox, F_OK) == 0 || errno != ENOENT;
	if (acts->has_set && !acts->goes_on)
		(void)change_set_open(set, &acts->set, NULL);
}

/* A discard of nothing says nothing. */
static bool is_ours(const struct blame_acts *acts, const struct act *act)
{
	return strcmp(act->sandbox, acts->id) == 0 && strncmp(act->detail, "0 ", 2) != 0;
}

/* Not of commits. */
static bool is_of_files(const struct blame_acts *acts, const struct act *act)
{
	return is_ours(acts, act) && act->detail[0] >= '1' && act->detail[0] <= '9';
}

/* Which files came over with commits is not known here. */
static bool has_branch(const struct blame_acts *acts)
{
	for (size_t i = 0; i < acts->n; i++)
		if (is_ours(acts, &acts->items[i]) && !is_of_files(acts, &acts->items[i]))
			return true;
	return false;
}

static bool ends_all(const struct act *act)
{
	return act->is_apply && slice_ends(slice_of(act->detail), PENDING_NONE_LEFT);
}

/* By the ledger, which counts: what it says of all of them is so of each. */
static enum blame_fate fate_of_all(const struct blame_acts *acts)
{
	const struct act *last = NULL;
	size_t n_applied = 0, n_discarded = 0;

	if (has_branch(acts))
		return BLAME_FATE_UNKNOWN;
	for (size_t i = 0; i < acts->n; i++) {
		if (!is_of_files(acts, &acts->items[i]))
			continue;
		last = &acts->items[i];
		n_applied += last->is_apply;
		n_discarded += !last->is_apply;
	}
	if (n_applied > 0 && n_discarded == 0 && ends_all(last))
		return BLAME_FATE_APPLIED;
	return n_discarded > 0 && n_applied == 0 ? BLAME_FATE_DISCARDED : BLAME_FATE_UNKNOWN;
}

/* An apply renamed it, or a folder around it: what it did with it is not written down under this name. */
static bool was_renamed(const struct journal *journal, int n, struct slice rest)
{
	scoped_mem char *path = mem_copy(rest.p, rest.len);
	scoped_mem char *now = journal_now(journal, n, path);
	scoped_mem char *before = journal_before(journal, n, path);

	return strcmp(now, path) != 0 || strcmp(before, path) != 0;
}

enum blame_fate blame_acts_fate(const struct blame_acts *acts, struct slice path)
{
	const struct journal_entry *entry;
	const struct change_layer *layer;
	struct slice rest;

	if (!acts->has_set && !acts->goes_on)
		return fate_of_all(acts);
	layer = acts->set ? change_set_find(acts->set, path, &rest) : NULL;
	if (!layer || layer->n < 0)
		return BLAME_FATE_UNKNOWN;
	entry = journal_find(acts->set->journal, layer->n, rest, false);
	if (!entry)
		entry = journal_find(acts->set->journal, layer->n, rest, true);
	if (!entry)
		return has_branch(acts) || was_renamed(acts->set->journal, layer->n, rest)
		               ? BLAME_FATE_UNKNOWN
		               : BLAME_FATE_NEITHER;
	return entry->act == JOURNAL_APPLIED ? BLAME_FATE_APPLIED : BLAME_FATE_DISCARDED;
}

static const char *act_word(const struct act *act)
{
	return act->is_apply ? "applied" : "discarded";
}

void blame_acts_json(const struct blame_acts *acts, enum blame_fate fate, struct jsonw *j)
{
	static const char *const states[] = {
		[BLAME_FATE_APPLIED] = "applied",
		[BLAME_FATE_DISCARDED] = "discarded",
		[BLAME_FATE_NEITHER] = "neither",
	};
	char at[CLOCK_TEXT_LEN];

	if (fate != BLAME_FATE_UNKNOWN)
		jsonw_ktext(j, "state", states[fate]);
	jsonw_key(j, "applied");
	jsonw_array(j);
	for (size_t i = 0; i < acts->n; i++) {
		const struct act *act = &acts->items[i];

		if (strcmp(act->sandbox, acts->id) != 0)
			continue;
		clock_format(act->at_ms, at);
		jsonw_object(j);
		jsonw_ktext(j, "act", act_word(act));
		jsonw_ktext(j, "at", at);
		jsonw_ktext(j, "detail", act->detail);
		jsonw_object_end(j);
	}
	jsonw_array_end(j);
}

/* The last one, and how many came before it: a line is no place for all, and which of them dealt with a path is not
 * known but where there is one. */
static const struct act *last_act(
	const struct blame_acts *acts, enum blame_fate fate, size_t *ret_n)
{
	const struct act *last = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < acts->n; i++) {
		const struct act *act = &acts->items[i];

		if (!is_ours(acts, act) || (fate == BLAME_FATE_APPLIED && !act->is_apply) ||
			(fate == BLAME_FATE_DISCARDED && act->is_apply) ||
			(fate != BLAME_FATE_UNKNOWN && !is_of_files(acts, act)))
			continue;
		last = act;
		++*ret_n;
	}
	return last;
}

/* Where both was done, the last act would be read as what became of this path. */
static bool add_both(const struct blame_acts *acts, const char *last_at, struct str *out)
{
	size_t n_applied, n_discarded;

	(void)last_act(acts, BLAME_FATE_APPLIED, &n_applied);
	(void)last_act(acts, BLAME_FATE_DISCARDED, &n_discarded);
	if (n_applied == 0 || n_discarded == 0)
		return false;
	str_printf(out,
		"; applied or discarded, which is not known any more: of this sandbox's changes "
		"some were applied (%zu time%s) and some discarded (%zu time%s), last at %s",
		n_applied, n_applied == 1 ? "" : "s", n_discarded, n_discarded == 1 ? "" : "s",
		last_at);
	return true;
}

void blame_acts_text(const struct blame_acts *acts, enum blame_fate fate, struct str *out)
{
	size_t n;
	const struct act *last = last_act(acts, fate, &n);
	char at[CLOCK_TEXT_LEN] = "";

	if (last)
		clock_format(last->at_ms, at);
	if (fate == BLAME_FATE_NEITHER) {
		str_puts(out, "; not applied");
	} else if (fate != BLAME_FATE_UNKNOWN) {
		str_puts(out, fate == BLAME_FATE_APPLIED ? "; applied" : "; discarded");
		if (n == 1)
			str_printf(out, " at %s", at);
	} else if (last && !add_both(acts, at, out)) {
		str_printf(out, "; of this sandbox: %s ", act_word(last));
		log_add_escaped(out, slice_of(last->detail));
		str_printf(out, " on the host at %s", at);
		if (n > 1)
			str_printf(out, " (and %zu times earlier)", n - 1);
	}
}
