/* SPDX-License-Identifier: Apache-2.0 */
/* cloche exec: a command in a running sandbox. */
#include <stddef.h>
#include <stdio.h>

#include "cli/attach.h"
#include "cli/exec_options.h"
#include "cli/records.h"
#include "cli/verb.h"
#include "util/jsonw.h"

static const struct option table[] = {
	{"detach", 0, NULL, "print its id and do not wait", OPTION_ON,
		offsetof(struct spec_exec, detach)},
	{NULL},
};
static const struct option_group groups[] = {
	{"Exec", table, 0, exec_options_exec}, EXEC_OPTIONS_GROUPS(0), {NULL}};

static void init(void *options)
{
	exec_options_init(options);
}

static void done(void *options)
{
	exec_options_done(options);
}

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	return exec_options_check(options, n_args - 1, false, err);
}

static int detach(struct session *session, const struct spec_exec *exec, struct err *err)
{
	scoped_str struct str spec = {0}, body = {0};
	struct jsonw j = jsonw_to(&body);
	json_t *answer;
	int r;

	spec_exec_write(&spec, exec);
	jsonw_object(&j);
	jsonw_key(&j, "spec");
	jsonw_raw(&j, str_slice(&spec));
	jsonw_object_end(&j);
	r = session_ask(session, "exec", str_slice(&body), &answer, err);
	if (r < 0)
		return r;
	printf("%s\n", json_string_value(json_object_get(answer, "exec")));
	json_decref(answer);
	return 0;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct exec_options *o = options;
	struct exec_outcome outcome;
	struct session session;
	char id[ID_SIZE];
	int r = records_resolve(cli, args[0], id, err);

	if (r < 0)
		return r;
	exec_options_add_words(o, args + 1, n_args - 1);
	exec_options_finish(o, cli);
	r = session_connect(&session, cli, id, err);
	if (r < 0)
		return r;
	if (o->exec->detach)
		r = detach(&session, o->exec, err);
	else
		r = attach_exec(&session, o->exec, &outcome, err);
	if (r == 0 && !o->exec->detach) {
		exec_outcome_explain(o->exec, &outcome);
		r = outcome.exit_status;
	}
	session_done(&session);
	return r;
}

const struct verb verb_exec = {
	.name = "exec",
	.class = VERB_RUN,
	.usage = "ID [--] COMMAND [ARG...]",
	.help = "run a command in a running sandbox",
	.groups = groups,
	.options_size = sizeof(struct exec_options),
	.init = init,
	.done = done,
	.min_args = 1,
	.max_args = VERB_MANY,
	.is_command = true,
	.n_before = 1,
	.check = check,
	.run = run,
};
