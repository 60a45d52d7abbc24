/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/server_act.h"

#include <errno.h>
#include <string.h>

#include "util/str.h"

#define MANY 1000

const struct server_act server_act_keys[] = {
	{"list", "", 0, 0},
	{"create", "", 0, 0, .takes_options = true},
	{"revoke", " ID...", 1, MANY},
	{NULL},
};
const struct server_act server_act_accounts[] = {
	{"list", "", 0, 0},
	{"create", " ID", 1, 1, .takes_options = true},
	{NULL},
};
const struct server_act server_act_audit[] = {
	{"list", "", 0, 0, .takes_options = true},
	{NULL},
};
const struct server_act server_act_webhooks[] = {
	{"list", "", 0, 0},
	{"create", " URL", 1, 1, .takes_options = true},
	{"delete", " ID...", 1, MANY},
	{"deliveries", " ID", 1, 1},
	{"redeliver", " ID DELIVERY...", 2, MANY},
	{NULL},
};
const struct server_act server_act_secrets[] = {
	{"list", "", 0, 0},
	{"create", " NAME", 1, 1, .takes_options = true},
	{"delete", " NAME...", 1, MANY},
	{NULL},
};

void server_act_done(void *options)
{
	struct server_options *o = options;

	spec_words_done(&o->hosts);
	spec_words_done(&o->events);
}

const struct server_act *server_act_find(
	const struct server_act *acts, char **args, size_t n_args, size_t *ret_n)
{
	*ret_n = n_args > 0;
	if (n_args == 0)
		return acts;
	for (; acts->name; acts++)
		if (strcmp(acts->name, args[0]) == 0)
			return acts;
	return NULL;
}

static void add_names(struct str *out, const struct server_act *acts)
{
	for (size_t i = 0; acts[i].name; i++)
		str_printf(out, "%s%s%s", i ? ", " : "", acts[i].name, acts[i].args);
}

static bool has_any(const struct server_options *o)
{
	const char *const texts[] = {
		o->name, o->role, o->account, o->sandbox, o->file, o->since, o->until};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i])
			return true;
	return o->rate_limit || o->max_sandboxes || o->max_execs || o->limit || o->hosts.n ||
	       o->events.n || o->plain || o->follow;
}

int server_act_check(const struct server_act *acts, const struct server_options *o, char **args,
	size_t n_args, struct err *err)
{
	scoped_str struct str names = {0};
	size_t n;
	const struct server_act *act = server_act_find(acts, args, n_args, &n);

	add_names(&names, acts);
	if (!act)
		return err_set(err, -EINVAL, "'%s': want one of %s", args[0], names.p);
	if (n_args - n < act->min || n_args - n > act->max)
		return err_set(err, -EINVAL, "want %s%s", act->name, act->args);
	if (!act->takes_options && has_any(o))
		return err_set(err, -EINVAL, "'%s' takes none of these options", act->name);
	return 0;
}
