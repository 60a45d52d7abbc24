/* SPDX-License-Identifier: Apache-2.0 */
/* cloche net: the hosts that were reached or refused, and what was asked of them. */
#include "cli/fold.h"
#include "cli/verb.h"
#include "view/network_table.h"

FOLD_ADAPTERS(network_table)

static int read_body(void *ctx, struct slice sha256, struct str *out)
{
	struct feed *feed = ctx;

	return feed->kind->blob(feed, sha256, NETWORK_BODY_MAX, out);
}

static void open_bodies(void *view, struct feed *feed)
{
	network_table_read_bodies(view, read_body, feed);
}

static const struct fold fold = {FOLD_ROW, .needs_source = "network", .open = open_bodies};

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	return fold_run(cli, &fold, options, args, n_args, err);
}

const struct verb verb_net = {
	.name = "net",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "the hosts that were reached, failed or refused, and the requests to them",
	.text = "One line for each host, address and port, its first requests below it. With "
		"--json "
		"all requests, with headers and bodies.",
	.groups = source_options_groups,
	.options_size = sizeof(struct source_options),
	.done = source_options_done,
	.max_args = 1,
	.check = source_options_check,
	.run = run,
};
