/* SPDX-License-Identifier: Apache-2.0 */
/* cloche run: the main job. A sandbox, a command in it, its summary; the record and the change sets stay. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/attach.h"
#include "cli/caller_file.h"
#include "cli/pending.h"
#include "cli/run_options.h"

#include "cli/summary_source.h"
#include "cli/verb.h"
#include "launcher/mend.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"

static int write_id(const struct cli *cli, const char *path, const char *id, struct err *err)
{
	scoped_mem char *line = mem_printf("%s\n", id);

	return path ? caller_file_write(cli, path, slice_of(line), err) : 0;
}

static int stop(struct session *session, struct err *err)
{
	return session_ask(
		session, "stop", slice_of("{\"reason\":\"its command ended\"}"), NULL, err);
}

static bool is_to_apply(const struct run_options *o, int status)
{
	return o->apply == RUN_APPLY_ALWAYS || (o->apply == RUN_APPLY_ON_SUCCESS && status == 0);
}

/* What comes after the command: the summary, on stderr and where asked in a file, and --fail-on. */
static int conclude(const struct cli *cli, const struct run_options *o, const char *id, int status,
	struct err *err)
{
	scoped(summary_source) struct summary_source *source = NULL;
	scoped_str struct str text = {0}, markdown = {0}, names = {0};
	bool is_quiet = o->no_summary || cli->quiet;
	int r = 0;

	if (is_quiet && !o->markdown_file && !o->fail_on)
		return status;
	r = summary_source_open(cli, id, "last", &source, err);
	if (r == 0 && !is_quiet) {
		summary_source_write(
			source, SUMMARY_FORM_TEXT, cli_has_color(cli, STDERR_FILENO), &text);
		(void)fdio_write_all(STDERR_FILENO, text.p, text.len); /* nobody reads it: fine */
	}
	if (r == 0 && o->markdown_file) {
		summary_source_write(source, SUMMARY_FORM_MARKDOWN, false, &markdown);
		r = caller_file_write(cli, o->markdown_file, str_slice(&markdown), err);
	}
	if (r < 0)
		return r;
	if (status != 0 || !summary_source_check(source, o->fail_on, &names))
		return status;
	log_warn("--fail-on: %s", names.p);
	return RUN_FAIL_STATUS;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct run_options *o = options;
	struct exec_outcome outcome = {0};
	struct session session;
	char id[ID_SIZE];
	bool is_refused = false;
	int r = run_options_finish(o, cli, args, n_args, err);

	if (r < 0)
		return r;
	o->exec.exec->has_stdin = true; /* as any program that is run; exec asks for -i */
	mend_look(cli->state_dir, cli->run_dir);
	r = session_start(&session, cli, o->create.spec, err);
	image_choice_release(&o->create.image);
	spec_hidden_forget(&o->create.spec->network);
	if (r < 0)
		return r;
	memcpy(id, session.id, sizeof(id));
	r = write_id(cli, o->id_file, id, err);
	if (r == 0)
		r = attach_exec(&session, o->exec.exec, &outcome, err);
	if (r == 0)
		exec_outcome_explain(o->exec.exec, &outcome);
	if (r == 0)
		r = stop(&session, err);
	if (r == 0 && is_to_apply(o, outcome.exit_status)) {
		session_done(&session); /* changes of a sandbox that is there are not taken over */
		r = pending_apply_all(cli, id, err);
		is_refused = r > 0;
	}
	/* The summary is made while the supervisor clears away. */
	if (r >= 0)
		r = conclude(cli, o, id, outcome.exit_status, err);
	if (r == 0 && is_refused)
		r = CLI_NO;
	session_done(&session);
	return r;
}

const struct verb verb_run = {
	.name = "run",
	.class = VERB_RUN,
	.usage = "[--] COMMAND [ARG...]",
	.help = "run a command in a new sandbox, print the summary of what it did",
	.text = "The current folder is shown at its own path, copy on write. Where folders are\n"
		"named with --mount, it is there only with one of --ro, --rw and --apply.",
	.groups = run_options_groups,
	.options_size = sizeof(struct run_options),
	.init = run_options_init,
	.done = run_options_done,
	.min_args = 0,
	.max_args = VERB_MANY,
	.is_command = true,
	.check = run_options_check,
	.run = run,
};
