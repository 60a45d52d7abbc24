/* SPDX-License-Identifier: Apache-2.0 */
/* run: a sandbox of the server's, a command in it, its summary. Folders of this host are not there. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "cli/caller_file.h"
#include "cli/run_options.h"
#include "remote/remote_create.h"
#include "remote/remote_exec.h"
#include "remote/remote_life.h"
#include "remote/remote_texts.h"
#include "remote/remote_verbs.h"
#include "report/summary.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"

static int refuse(const struct run_options *o, size_t n_args)
{
	if (o->rw || o->ro || o->apply != RUN_APPLY_NO)
		return remote_verbs_refuse(&verb_run, "--rw, --ro and --apply not with a server",
			"the current folder is this host's: put what the command needs into the "
			"sandbox, and fetch what it made");
	if (o->create.spec->network.ask)
		return remote_verbs_refuse(&verb_run, "--ask not with a server",
			"nobody is asked on this terminal: use create --ask and exec, and answer "
			"by POST .../asks");
	if (n_args == 0 && !o->exec.exec->command)
		return remote_verbs_refuse(
			&verb_run, "an image's own command not with a server", "name the command");
	return remote_exec_check(&verb_run, &o->exec);
}

static int write_file(const struct cli *cli, const char *path, struct slice text, struct err *err)
{
	return path ? caller_file_write(cli, path, text, err) : 0;
}

static int write_markdown(const struct cli *cli, const char *path, const char *id, struct err *err)
{
	scoped_str struct str text = {0};
	int r = path ? remote_texts_summary(cli, id, SUMMARY_FORM_MARKDOWN, false, &text, err) : 0;

	return r < 0 ? r : write_file(cli, path, str_slice(&text), err);
}

/* By the record's events, as on its host: the status that the run is to end with. */
static int check(const struct cli *cli, const struct run_options *o, const char *id, int status,
	struct err *err)
{
	scoped(summary) struct summary *summary = summary_new(&(struct summary_facts){.id = id});
	scoped_str struct str names = {0};
	const struct event *ev;
	struct feed *feed = NULL;
	struct slice line;
	int r = cli->elsewhere->open(cli, id, false, &feed, err);

	if (r < 0)
		return r;
	while ((r = feed->kind->next(feed, &ev, &line, err)) == 1)
		summary_add(summary, ev);
	feed->kind->free(feed);
	if (r < 0 || !summary_check(summary, o->fail_on, &names))
		return r < 0 ? r : status;
	log_warn("--fail-on: %s", names.p);
	return RUN_FAIL_STATUS;
}

static int conclude(const struct cli *cli, const struct run_options *o, const char *id, int status,
	struct err *err)
{
	scoped_str struct str text = {0};
	int r = write_markdown(cli, o->markdown_file, id, err);

	if (r == 0 && !o->no_summary && !cli->quiet)
		r = remote_texts_summary(
			cli, id, SUMMARY_FORM_TEXT, cli_has_color(cli, STDERR_FILENO), &text, err);
	if (r == 0 && text.len)
		(void)fdio_write_all(STDERR_FILENO, text.p, text.len); /* nobody reads it: fine */
	if (r < 0)
		return r;
	return status == 0 && o->fail_on ? check(cli, o, id, status, err) : status;
}

/* Its files go unless they are to be kept; record and changes stay. */
static int end(const struct cli *cli, const char *id, bool keep, struct err *err)
{
	return remote_life_ask(cli,
		&(struct remote_life_ask){
			.method = keep ? "POST" : "DELETE", .id = id, .act = keep ? "stop" : NULL},
		NULL, err);
}

static void add_command(struct run_options *o, char **args, size_t n_args)
{
	const char *entrypoint = o->create.image.entrypoint;

	if (entrypoint && *entrypoint)
		spec_words_add(&o->exec.exec->argv, entrypoint);
	exec_options_add_words(&o->exec, args, n_args);
}

static int run_in(const struct cli *cli, struct run_options *o, const char *id, int *ret_status,
	struct err *err)
{
	scoped_mem char *line = mem_printf("%s\n", id);
	struct exec_outcome outcome = {0};
	int r = write_file(cli, o->id_file, slice_of(line), err), ended;
	struct err why = {0};

	if (r == 0)
		r = remote_exec_run(cli, id, o->exec.exec, &outcome, err);
	*ret_status = outcome.exit_status;
	ended = end(cli, id, o->create.spec->keep, r < 0 ? &why : err);
	if (r < 0 && ended < 0)
		log_warn("sandbox %s could not be ended: %s", id, why.msg);
	return r < 0 ? r : ended;
}

static int run(const struct cli *cli, struct run_options *o, struct err *err)
{
	char id[ID_SIZE];
	int r = remote_create_sandbox(cli, &verb_run, &o->create, id, err), status = 0;

	if (r != 0)
		return r;
	r = run_in(cli, o, id, &status, err);
	return r < 0 ? r : conclude(cli, o, id, status, err);
}

/* Ctrl-C waits until the command is there that it kills: then nothing of the run is left behind. */
static void hold_signals(sigset_t *ret_before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, ret_before);
}

int remote_run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct run_options *o = options;
	int r = refuse(o, n_args);
	sigset_t before;

	if (r != 0)
		return r;
	o->exec.exec->has_stdin = true; /* as on a host */
	add_command(o, args, n_args);
	if (!cli->quiet && !o->create.spec->n_mounts)
		log_warn("the sandbox is on the server, and the current folder is not in it");
	hold_signals(&before);
	r = run(cli, o, err);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}
