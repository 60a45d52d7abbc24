/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/remote_verbs.h"

#include <errno.h>

#include "remote/link.h"
#include "remote/remote_records.h"
#include "util/log.h"

#define OF_HOST \
	"this is about the host that it runs on: leave --server out (and unset CLOCHE_SERVER)"

static const struct row {
	const struct verb *verb;
	int (*run)(
		const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
	const char *refusal; /* NULL: it is done, by run, or where that is NULL as on a host */
} rows[] = {
	{&verb_run, remote_run},
	{&verb_create, remote_create},
	{&verb_exec, remote_exec},
	{&verb_ps, remote_ps},
	{&verb_inspect, remote_inspect},
	{&verb_pause, remote_pause},
	{&verb_wake, remote_wake},
	{&verb_suspend, remote_suspend},
	{&verb_resume, remote_resume},
	{&verb_fork, remote_fork},
	{&verb_net_rules, remote_net_rules},
	{&verb_stop, remote_stop},
	{&verb_rm, remote_rm},
	{&verb_show},
	{&verb_commands},
	{&verb_log},
	{&verb_tree},
	{&verb_files},
	{&verb_net},
	{&verb_allow_list},
	{&verb_timeline},
	{&verb_stats},
	{&verb_events},
	{&verb_watch},
	{&verb_export},
	{&verb_manifest, remote_manifest},
	{&verb_watch_files, remote_watch_files},
	{&verb_changes, remote_changes},
	{&verb_diff, remote_diff},
	{&verb_discard, remote_discard},
	{&verb_completion},
	{&verb_keys, remote_keys},
	{&verb_accounts, remote_accounts},
	{&verb_audit, remote_audit},
	{&verb_secrets, remote_secrets},
	{&verb_webhooks, remote_webhooks},
	{&verb_verify, NULL,
		"a record is proved by its files, which are on the server's host: run it there"},
	{&verb_apply, NULL,
		"folders of this host are not the server's: in the folder that is to have the "
		"changes, "
		"run `cloche diff ID | git apply`"},
	{&verb_blame, NULL,
		"it reads all records of a host: run it on the server's, or ask `cloche files` of "
		"one "
		"sandbox"},
	{&verb_doctor, NULL, OF_HOST},
	{&verb_gc, NULL, OF_HOST},
	{&verb_serve, NULL, OF_HOST},
	{&verb_reindex, NULL, OF_HOST},
};

static const struct row *find(const struct verb *verb)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].verb == verb)
			return &rows[i];
	return NULL;
}

bool remote_verbs_knows(const struct verb *verb)
{
	const struct row *row = find(verb);

	return row && (row->run || row->refusal || verb->run);
}

int remote_verbs_refuse(const struct verb *verb, const char *what, const char *advice)
{
	log_warn("%s: %s: %s", verb->name, what, advice);
	return CLI_USAGE;
}

int remote_verbs_run(const struct cli *cli, const struct verb *verb, void *options, char **args,
	size_t n_args, struct err *err)
{
	const struct row *row = find(verb);
	scoped(link) struct link *link = NULL;
	struct cli there = *cli;
	int r;

	if (!row || row->refusal)
		return remote_verbs_refuse(verb, "not with a server",
			row ? row->refusal : "a control plane does not do this");
	r = link_open(cli, &link, err);
	if (r < 0)
		return r;
	link->elsewhere = remote_records;
	there.elsewhere = &link->elsewhere;
	return (row->run ? row->run : verb->run)(&there, options, args, n_args, err);
}
