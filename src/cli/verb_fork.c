/* SPDX-License-Identifier: Apache-2.0 */
/* cloche fork: a new sandbox over the files of one that rests. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "cli/at_rest.h"
#include "cli/create_options.h"
#include "cli/freeze.h"
#include "cli/layers.h"
#include "cli/secret_values.h"
#include "cli/session.h"
#include "cli/spec_asked.h"
#include "cli/verb.h"
#include "launcher/mend.h"
#include "manifest/apply_tidy.h"
#include "manifest/change_set.h"
#include "manifest/journal.h"
#include "util/mem.h"

static const struct option_group groups[] = {CREATE_OPTIONS_GROUPS(0), {NULL}};

static void init(void *options)
{
	create_options_init(options);
}

static void done(void *options)
{
	create_options_done(options);
}

/* What the options name wins over what the source was asked to be. */
static int merge(const struct create_options *o, struct spec *spec, struct err *err)
{
	json_t *asked = spec_asked(o->spec);
	scoped_mem char *text = json_dumps(asked, JSON_COMPACT);

	json_decref(asked);
	return text ? spec_apply(spec, slice_of(text), err) : -ENOMEM;
}

/* What one sandbox alone can have. */
static void drop_own(struct spec *spec)
{
	free(take(&spec->name));
	spec->keep = false;
	for (size_t i = 0; i < spec->network.n_publish; i++)
		free(spec->network.publish[i].address);
	spec->network.n_publish = 0;
}

static int settle(struct create_options *o, const struct cli *cli, const struct at_rest *at,
	struct spec *spec, struct err *err)
{
	int r;

	drop_own(spec);
	free(spec->forked_from);
	spec->forked_from = mem_dup(at->id);
	r = merge(o, spec, err);
	spec->owner_uid = cli->uid;
	spec->owner_gid = cli->gid;
	if (r == 0)
		r = secret_values_again(&spec->network,
			&(struct secret_sources){.files = &o->secret_files, .hidden = o->hidden},
			err);
	return r < 0 ? r : spec_check(spec, cli->state_dir, cli->run_dir, err);
}

/* What was applied or discarded of the source's changes is so for the new one too, as far as it goes up to here. What an
 * apply that was killed left beside is the source's to take away: before, so that not both do. */
static int copy_journal(const struct cli *cli, const char *from, const char *to, struct err *err)
{
	scoped_mem char *source = mem_printf("%s/changes/%s", cli->state_dir, from);
	scoped_mem char *target = mem_printf("%s/changes/%s", cli->state_dir, to);
	scoped(change_set) struct change_set *set = NULL;
	int r = change_set_open(source, &set, err);

	if (r < 0)
		return r;
	apply_tidy(set);
	return journal_copy(source, target, err);
}

static int start(const struct cli *cli, const struct at_rest *at, struct err *err)
{
	scoped_str struct str line = {0};
	struct session session;
	int r = session_start(&session, cli, at->rest->spec, err);

	spec_hidden_forget(&at->rest->spec->network);
	if (r < 0)
		return r;
	r = copy_journal(cli, at->id, session.id, err);
	if (r == 0)
		r = session_keep(&session, err);
	if (r == 0)
		str_printf(&line, "%s\n", session.id);
	if (r == 0)
		r = cli_print(&line, err);
	session_done(&session);
	return r;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct create_options *o = options;
	scoped_fd int store = -1;
	struct at_rest at;
	int r = at_rest_open(cli, args[0], &at, err);

	if (r >= 0)
		store = layers_lock(cli->state_dir, false, err);
	if (r >= 0 && store < 0)
		r = store;
	if (r >= 0 && (o->spec->image || o->spec->rootfs))
		r = err_set(err, -EINVAL,
			"a fork has the root of sandbox %s: leave --image and --rootfs out", at.id);
	if (r >= 0)
		r = create_options_shape(o, cli, err);
	if (r >= 0)
		r = freeze_uppers(cli, &at, err);
	if (r >= 0)
		r = settle(o, cli, &at, at.rest->spec, err);
	if (r >= 0)
		r = start(cli, &at, err);
	at_rest_done(&at);
	return r < 0 ? r : 0;
}

const struct verb verb_fork = {
	.name = "fork",
	.class = VERB_RUN,
	.usage = "ID",
	.help = "make a new sandbox over the files of a suspended or kept one, print its id",
	.text = "At once, whatever there is: files are shared until either changes them. What the "
		"options do not\n"
		"name is as it is in ID; secrets are given again, and published ports asked for "
		"again. The root is ID's: --image and --rootfs are refused.",
	.groups = groups,
	.options_size = sizeof(struct create_options),
	.init = init,
	.done = done,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
