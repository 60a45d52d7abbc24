/* SPDX-License-Identifier: Apache-2.0 */
/* cloche create: a sandbox that stays until it is stopped. */
#include "cli/create_options.h"
#include "cli/session.h"
#include "cli/verb.h"
#include "launcher/mend.h"

#include <stdio.h>

static const struct option_group groups[] = {CREATE_OPTIONS_GROUPS(0), {NULL}};

static void init(void *options)
{
	create_options_init(options);
}

static void done(void *options)
{
	create_options_done(options);
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct create_options *o = options;
	scoped_str struct str line = {0};
	struct session session;
	int r = create_options_finish(o, cli, err);

	if (r < 0)
		return r;
	mend_look(cli->state_dir, cli->run_dir);
	r = session_start(&session, cli, o->spec, err);
	image_choice_release(&o->image);
	spec_hidden_forget(&o->spec->network);
	if (r < 0)
		return r;
	r = session_keep(&session, err);
	if (r == 0)
		str_printf(&line, "%s\n", session.id);
	if (r == 0)
		r = cli_print(&line, err);
	session_done(&session);
	return r;
}

static bool is_forbidden(const void *options)
{
	return ((const struct create_options *)options)->is_forbidden;
}

const struct verb verb_create = {
	.name = "create",
	.class = VERB_RUN,
	.usage = "",
	.help = "make a sandbox that stays, print its id",
	.groups = groups,
	.options_size = sizeof(struct create_options),
	.init = init,
	.done = done,
	.is_forbidden = is_forbidden,
	.run = run,
};
