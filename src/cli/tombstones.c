/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tombstones.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

#define PREFIX "sb_"

struct search {
	const char *text;
	struct tombstone *found;
	size_t n; /* sandboxes that it may stand for */
};

static bool is_meant(const struct search *search, const char *id)
{
	size_t skip = strncmp(search->text, PREFIX, strlen(PREFIX)) == 0 ? 0 : strlen(PREFIX);

	return *search->text && strncmp(id + skip, search->text, strlen(search->text)) == 0;
}

static int on_line(void *ctx, const struct ledger_line *line)
{
	struct search *search = ctx;
	struct tombstone *found = search->found;

	if (strcmp(line->act, LEDGER_REMOVE) != 0 || !id_is_valid("sb", line->sandbox) ||
		!is_meant(search, line->sandbox))
		return 0;
	search->n += search->n == 0 || strcmp(found->sandbox, line->sandbox) != 0;
	*found = (struct tombstone){.seq = line->seq,
		.at_ms = line->at_ms,
		.is_aged = line->detail && strcmp(line->detail, LEDGER_AGED) == 0};
	memcpy(found->sandbox, line->sandbox, ID_SIZE);
	(void)snprintf(found->actor, sizeof(found->actor), "%s", line->actor ? line->actor : "");
	(void)snprintf(found->head, sizeof(found->head), "%s", line->head ? line->head : "");
	return 0;
}

int tombstones_find(const struct cli *cli, const char *text, struct tombstone *ret, struct err *err)
{
	struct tombstone found = {0};
	struct search search = {.text = text, .found = &found};
	int r = ledger_walk(cli->state_dir, on_line, &search, err);

	if (r < 0)
		return r;
	if (search.n == 0)
		return -ENOENT;
	if (search.n > 1)
		return err_set(err, -ENOTUNIQ,
			"'%s' stands for more than one record that was removed (%zu): write more "
			"of the id",
			text, search.n);
	*ret = found;
	return 0;
}

void tombstones_add_text(struct str *out, const struct tombstone *t)
{
	char at[CLOCK_TEXT_LEN];

	clock_format(t->at_ms, at);
	str_printf(out, "%s  %s  at %s", t->sandbox, t->is_aged ? LEDGER_AGED : "removed", at);
	if (*t->actor) {
		str_puts(out, " by ");
		log_add_escaped(out, slice_of(t->actor));
	}
	if (*t->head)
		str_printf(out, ", its last head was %s (seq %llu)", t->head,
			(unsigned long long)t->seq);
	str_puts(out, ", as the ledger says\n");
}

void tombstones_add_members(struct jsonw *j, const struct tombstone *t)
{
	char at[CLOCK_TEXT_LEN];

	clock_format(t->at_ms, at);
	jsonw_ktext(j, "sandbox", t->sandbox);
	jsonw_knull(j, "intact"); /* nobody can say any more */
	jsonw_ktext(j, "removed", t->is_aged ? LEDGER_AGED : "on request");
	jsonw_ktext(j, "removed_at", at);
	jsonw_ktext(j, "removed_by", *t->actor ? t->actor : NULL);
	jsonw_kint(j, "last_seq", (int64_t)t->seq);
	jsonw_ktext(j, "head", t->head);
	jsonw_kbool(j, "ledger", true);
}
