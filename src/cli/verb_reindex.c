/* SPDX-License-Identifier: Apache-2.0 */
/* cloche reindex: the control plane's index made again. By its half without rights (server/reindex.c), which alone opens the
 * database. */
#include <stddef.h>

#include "cli/launcher_start.h"
#include "cli/verb.h"

struct reindex_options {
	const char *database, *config, *user;
};

static const struct option table[] = {
	{"database", 0, "PLACE", "sqlite:PATH or postgres://... (a file in the state)", OPTION_TEXT,
		offsetof(struct reindex_options, database)},
	{"config", 0, "FILE", "that of the server: how long things are kept", OPTION_TEXT,
		offsetof(struct reindex_options, config)},
	{"user", 0, "NAME", "as whom that server runs (cloche-serve)", OPTION_TEXT,
		offsetof(struct reindex_options, user)},
	{NULL},
};
static const struct option_group groups[] = {{"Reindex", table}, {NULL}};

static int fill(
	json_t *settings, const struct reindex_options *o, const struct cli *cli, struct err *err)
{
	const char *form = cli->json || cli->jsonl ? "json" : cli->quiet ? "quiet" : "text";

	launcher_start_set(settings, "reindex", form);
	launcher_start_set(settings, "database", o->database);
	launcher_start_set(settings, "user", o->user);
	return o->config ? launcher_start_config(settings, o->config, err) : 0;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	json_t *settings = json_object();
	int r = cli_need_root(err);

	if (r == 0)
		r = fill(settings, options, cli, err);
	if (r == 0)
		r = launcher_start(cli, settings, NULL, err);
	json_decref(settings);
	return r;
}

const struct verb verb_reindex = {
	.name = "reindex",
	.class = VERB_CARE,
	.usage = "",
	.help = "make the control plane's index again from records, ledger and audit journal",
	.text = "For a database that was lost, or put back from a copy. What is there stays; what "
		"is missing is\nadded, what no record has so is removed, and what has aged out "
		"stays out. `cloche serve`\nmay run meanwhile. Names and limits of accounts, keys, "
		"webhooks, secrets, network rules and\nproxies are in the database alone.",
	.groups = groups,
	.options_size = sizeof(struct reindex_options),
	.run = run,
};
