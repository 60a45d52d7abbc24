/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verb.h"

#include <errno.h>
#include <string.h>

const struct verb *const verb_table[] = {
	&verb_run,
	&verb_create,
	&verb_exec,
	&verb_ps,
	&verb_inspect,
	&verb_pause,
	&verb_wake,
	&verb_net_rules,
	&verb_suspend,
	&verb_resume,
	&verb_fork,
	&verb_stop,
	&verb_rm,
	&verb_show,
	&verb_commands,
	&verb_log,
	&verb_tree,
	&verb_files,
	&verb_net,
	&verb_allow_list,
	&verb_timeline,
	&verb_stats,
	&verb_events,
	&verb_watch,
	&verb_export,
	&verb_verify,
	&verb_manifest,
	&verb_watch_files,
	&verb_blame,
	&verb_changes,
	&verb_diff,
	&verb_apply,
	&verb_discard,
	&verb_doctor,
	&verb_gc,
	&verb_serve,
	&verb_reindex,
	&verb_completion,
	&verb_keys,
	&verb_accounts,
	&verb_audit,
	&verb_secrets,
	&verb_webhooks,
	NULL,
};

/* Verbs of the design whose part is not built yet. */
static const struct {
	const char *name, *part;
} later[] = {
	{"import", "portable records"},
	{"attach", "takeover"},
	{"replay", "takeover"},
	{"mcp", "agent tools"},
};

/* What others call them. */
static const struct {
	const char *name, *verb;
} other_words[] = {
	{"allow", "allow-list"},
	{"delete", "rm"},
	{"deny", "net-rules"},
	{"kill", "stop"},
	{"list", "ps"},
	{"ls", "ps"},
	{"network", "net"},
	{"remove", "rm"},
	{"rules", "net-rules"},
	{"start", "create"},
	{"summary", "show"},
};

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; verb_table[i]; i++)
		if (strcmp(verb_table[i]->name, name) == 0)
			return verb_table[i];
	return NULL;
}

int verb_refuse(const char *name, struct err *err)
{
	struct option_nearest nearest = {.text = name};

	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
		if (strcmp(later[i].name, name) == 0)
			return err_set(err, -EINVAL, "'%s' is not part of this version (%s)", name,
				later[i].part);
	for (size_t i = 0; verb_table[i]; i++)
		option_nearest_offer(&nearest, verb_table[i]->name);
	for (size_t i = 0; i < sizeof(other_words) / sizeof(other_words[0]); i++)
		if (strcmp(other_words[i].name, name) == 0)
			nearest.best = other_words[i].verb;
	if (nearest.best)
		return err_set(err, -EINVAL, "there is no verb '%s': did you mean '%s'?", name,
			nearest.best);
	return err_set(err, -EINVAL, "there is no verb '%s': `cloche --help` lists them", name);
}
