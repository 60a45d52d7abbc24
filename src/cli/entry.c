/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/entry.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/usage.h"
#include "cli/verb.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/scoped.h"

static int print(const struct str *text)
{
	return fwrite(text->p, 1, text->len, stdout) == text->len && fflush(stdout) == 0
	               ? 0
	               : CLI_FAILURE;
}

static int print_version(void)
{
	return puts("cloche " CLOCHE_VERSION) < 0 ? CLI_FAILURE : 0;
}

static int print_verb_help(const struct verb *verb)
{
	scoped_str struct str text = {0};

	usage_add_verb(&text, verb);
	return print(&text);
}

/* Whether the argument behind this global option is its value. */
static bool takes_next(const struct option_target *globals, const char *arg)
{
	const struct option *o =
		strncmp(arg, "--", 2) == 0 ? option_find(globals, arg + 2, strlen(arg + 2)) : NULL;

	return o && o->arg && o->kind != OPTION_LATER;
}

/* Takes the global options before the verb and returns where it stands, 0 where there is none. */
static int find_verb(struct cli *cli, int argc, char **argv, struct err *err)
{
	const struct option_target globals[] = {{cli_global_groups, cli}, {NULL}};
	scoped_mem char **items = new0_n(char *, (size_t)argc + 1);
	struct option_words words = {.items = items};
	int at = 1, r;

	while (at < argc && argv[at][0] == '-')
		at += takes_next(globals, argv[at]) ? 2 : 1;
	if (at > argc)
		at = argc;
	r = option_parse(globals, argv + 1, (size_t)at - 1, SIZE_MAX, &words, err);
	return r < 0 ? r : at < argc ? at : 0;
}

static int count_args(const struct verb *verb, size_t n, struct err *err)
{
	const char *gap = *verb->usage ? " " : "";

	if (n < verb->min_args)
		return err_set(err, -EINVAL, "want `cloche %s%s%s`", verb->name, gap, verb->usage);
	if (n > verb->max_args)
		return err_set(err, -EINVAL, "too many arguments: want `cloche %s%s%s`", verb->name,
			gap, verb->usage);
	return 0;
}

/* "cloche run agent --allow x" would run it with an open network, and nobody would notice. */
static int refuse_lost(const struct verb *verb, const struct option_target *targets,
	const struct option_words *words, struct err *err)
{
	const char *word;

	if (!verb->is_command || words->has_separator)
		return 0;
	word = option_find_lost(targets, words, (size_t)verb->n_before + 1);
	return word ? err_set(err, -EINVAL,
			      "'%s' stands behind the command: put it before, or write -- before "
			      "the command if it is the command's own",
			      word)
	            : 0;
}

struct call {
	const struct entry *entry;
	struct cli *cli;
	const struct verb *verb;
	void *options;
	char **args; /* behind the verb */
	size_t n_args;
};

/* Negative: wrong usage. */
static int parse(const struct call *c, struct option_words *words, struct err *err)
{
	const struct verb *verb = c->verb;
	struct option_target targets[3] = {{NULL}};
	size_t n = 0;
	int r;

	/* The verb's own come first: verify has a --key that is not the global one. */
	if (verb->groups)
		targets[n++] = (struct option_target){verb->groups, c->options};
	targets[n] = (struct option_target){cli_global_groups, c->cli};
	r = option_parse(targets, c->args, c->n_args, verb->is_command ? verb->n_before : SIZE_MAX,
		words, err);
	if (r < 0 || c->cli->help || c->cli->version)
		return r;
	r = refuse_lost(verb, targets, words, err);
	if (r == 0)
		r = cli_settle(c->cli, err);
	if (r == 0)
		r = count_args(verb, words->n, err);
	if (r == 0 && verb->check)
		r = verb->check(c->options, words->items, words->n, err);
	return r;
}

static int run_verb(const struct call *c)
{
	const struct verb *verb = c->verb;
	scoped_mem char **items = new0_n(char *, c->n_args + 1);
	struct option_words words = {.items = items};
	struct err err = {0};
	int r;

	r = parse(c, &words, &err);
	if (r < 0) {
		log_warn("%s: %s (`cloche %s --help` says more)", verb->name, err.msg, verb->name);
		return CLI_USAGE;
	}
	if (c->cli->help)
		return print_verb_help(verb);
	if (c->cli->version)
		return print_version();
	r = c->entry->run(c->cli, verb, c->options, words.items, words.n, &err);
	if (r >= 0)
		return r;
	log_warn("%s: %s", verb->name, err.msg[0] ? err.msg : strerror(-r));
	return verb->is_forbidden && verb->is_forbidden(c->options) ? CLI_FORBIDDEN : CLI_FAILURE;
}

/* "cloche last net" */
static int refuse_verb(const char *name, const char *next)
{
	struct err err = {0};

	verb_refuse(name, &err);
	if (next && verb_find(next))
		log_warn("there is no verb '%s': the verb stands first (`cloche %s %s`)", name,
			next, name);
	else
		log_warn("%s", err.msg);
	return CLI_USAGE;
}

static int start_verb(
	const struct entry *entry, struct cli *cli, const char *name, char **args, size_t n_args)
{
	struct call c = {.entry = entry,
		.cli = cli,
		.verb = verb_find(name),
		.args = args,
		.n_args = n_args};
	scoped_mem void *options = NULL;
	int status;

	if (!c.verb)
		return refuse_verb(name, n_args ? args[0] : NULL);
	c.options = options = mem_zero(1, c.verb->options_size ? c.verb->options_size : 1);
	if (c.verb->init)
		c.verb->init(options);
	status = run_verb(&c);
	if (c.verb->done)
		c.verb->done(options);
	return status;
}

static int help_without_verb(const struct cli *cli)
{
	scoped_str struct str text = {0};

	if (cli->version)
		return print_version();
	usage_add_all(&text);
	if (cli->help)
		return print(&text);
	fwrite(text.p, 1, text.len, stderr);
	return CLI_USAGE;
}

/* "cloche help run" is "cloche run --help". */
static int help_by_verb(const struct entry *entry, struct cli *cli, char **args, size_t n_args)
{
	char *const option = (char *)"--help";
	char *behind[] = {option, NULL};

	cli->help = true;
	if (n_args > 1) {
		log_warn("help: want `cloche help [VERB]`");
		return CLI_USAGE;
	}
	if (n_args == 0 || args[0][0] == '-' || strcmp(args[0], "help") == 0)
		return help_without_verb(cli);
	return start_verb(entry, cli, args[0], behind, 1);
}

int entry_main(const struct entry *entry, int argc, char **argv)
{
	__attribute__((cleanup(cli_done))) struct cli cli = {0};
	struct err err = {0};
	int at;

	cli.program = argv[0];
	cli.argv = argv;
	(void)signal(SIGCHLD, SIG_DFL); /* ignored by our starter, it would lose what helpers say */
	(void)signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is an error to tell */
	if (fdio_fill_standard() < 0)
		return CLI_FAILURE;
	at = find_verb(&cli, argc, argv, &err);
	if (at < 0) {
		log_warn(
			"%s (`cloche --help` lists all; those of a verb stand behind it)", err.msg);
		return CLI_USAGE;
	}
	if (at == 0)
		return help_without_verb(&cli);
	if (strcmp(argv[at], "help") == 0)
		return help_by_verb(entry, &cli, argv + at + 1, (size_t)(argc - at - 1));
	return start_verb(entry, &cli, argv[at], argv + at + 1, (size_t)(argc - at - 1));
}
