/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "report/summary_internal.h"

static const struct {
	const char *name;
	unsigned bit;
} conditions_table[] = {
	{"refused", SUMMARY_REFUSED},
	{"denied", SUMMARY_DENIED},
	{"incomplete", SUMMARY_INCOMPLETE},
	{"command", SUMMARY_COMMAND},
};

#define N (sizeof(conditions_table) / sizeof(conditions_table[0]))

static unsigned find(struct slice word)
{
	for (size_t i = 0; i < N; i++)
		if (slice_is(word, conditions_table[i].name))
			return conditions_table[i].bit;
	return 0;
}

int summary_check_parse(const char *text, unsigned *ret_conditions, struct err *err)
{
	unsigned conditions = 0;

	while (*text) {
		struct slice word = {.p = text, .len = strcspn(text, ",")};
		unsigned bit = find(word);

		if (!bit)
			return err_set(err, -EINVAL,
				"'%.*s': want refused, denied, incomplete or command",
				(int)word.len, word.p);
		conditions |= bit;
		text += word.len;
		text += *text == ',';
	}
	*ret_conditions = conditions;
	return 0;
}

static bool has_row(const struct summary_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		if (!rows->rows[i].is_aside && !rows->rows[i].place.is_shadow)
			return true;
	return rows->more > 0;
}

unsigned summary_check(struct summary *summary, unsigned conditions, struct str *names)
{
	struct summary_counts counts;
	unsigned hold = 0;

	summary_count(summary, &counts);
	if (has_row(&summary->refused) || has_row(&summary->hosts_refused) ||
		has_row(&summary->misused))
		hold |= SUMMARY_REFUSED;
	hold |= has_row(&summary->denied) ? SUMMARY_DENIED : 0;
	hold |= summary_is_complete(summary) ? 0 : SUMMARY_INCOMPLETE;
	hold |= counts.failed > 0 || summary->execs.started > summary->execs.ended ? SUMMARY_COMMAND
	                                                                           : 0;
	hold &= conditions;
	for (size_t i = 0, n = 0; names && i < N; i++) {
		if (!(hold & conditions_table[i].bit))
			continue;
		str_printf(names, "%s%s", n++ ? ", " : "", conditions_table[i].name);
	}
	return hold;
}
