/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec_options.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "spec/spec_parse.h"
#include "util/mem.h"

#define ROWS_DEFAULT    24
#define COLUMNS_DEFAULT 80

static int set_env(void *base, const char *value, struct err *err)
{
	struct spec_exec *exec = base;
	scoped_mem char *pair = NULL;
	const char *here;

	if (!*value || *value == '=')
		return err_set(err, -EINVAL, "'%s': want NAME or NAME=VALUE", value);
	if (strchr(value, '=')) {
		spec_words_add(&exec->env, value);
		return 0;
	}
	here = getenv(value);
	if (!here)
		return err_set(err, -EINVAL, "variable %s is not set here: give it as %s=VALUE",
			value, value);
	pair = mem_printf("%s=%s", value, here);
	spec_words_add(&exec->env, pair);
	return 0;
}

static int set_workdir(void *base, const char *value, struct err *err)
{
	struct spec_exec *exec = base;

	if (value[0] != '/')
		return err_set(
			err, -EINVAL, "'%s' is a place inside and must be an absolute path", value);
	free(exec->cwd);
	exec->cwd = mem_dup(value);
	return 0;
}

static int set_source(void *base, const char *value, struct err *err)
{
	struct spec_exec *exec = base;

	if (strcmp(value, "agent") != 0 && strcmp(value, "human_takeover") != 0)
		return err_set(err, -EINVAL, "'%s': want agent or human_takeover", value);
	free(exec->source);
	exec->source = mem_dup(value);
	return 0;
}

static int set_terminal(void *base, const char *value, struct err *err)
{
	struct exec_options *o = base;

	o->terminal = EXEC_TERMINAL_YES;
	return 0;
}

static int set_no_terminal(void *base, const char *value, struct err *err)
{
	struct exec_options *o = base;

	o->terminal = EXEC_TERMINAL_NO;
	return 0;
}

const struct option exec_options_table[] = {
	{"shell", 0, "STRING", "run this by /bin/sh -c instead of a command", OPTION_COPY,
		offsetof(struct spec_exec, command)},
	{"env", 'e', "NAME[=VALUE]", "set a variable; without a value, the one it has here",
		OPTION_CALL, .set = set_env},
	{"workdir", 'w', "DIR", "start in this folder", OPTION_CALL, .set = set_workdir},
	{"user", 'u', "USER", "as this user inside: a name, UID or UID:GID (root)", OPTION_COPY,
		offsetof(struct spec_exec, user)},
	{"timeout", 0, "TIME", "kill it and all it started after this long, such as 30s",
		OPTION_DURATION, offsetof(struct spec_exec, timeout_ms)},
	{"interactive", 'i', NULL, "pass stdin on", OPTION_ON,
		offsetof(struct spec_exec, has_stdin)},
	{"source", 0, "WHO", "who works in it: agent (default) or human_takeover", OPTION_CALL,
		.set = set_source},
	{NULL},
};

const struct option exec_options_terminal[] = {
	{"tty", 't', NULL, "a terminal, also where stdin and stdout are none", OPTION_CALL,
		.set = set_terminal},
	{"no-tty", 'T', NULL, "no terminal", OPTION_CALL, .set = set_no_terminal},
	{NULL},
};

void *exec_options_exec(void *base)
{
	struct exec_options *o = base;

	return o->exec;
}

void exec_options_init(struct exec_options *o)
{
	o->exec = spec_exec_new();
}

void exec_options_done(struct exec_options *o)
{
	spec_exec_free(o->exec);
}

int exec_options_check(const struct exec_options *o, size_t n_words, bool may_miss, struct err *err)
{
	if (o->exec->command && n_words)
		return err_set(err, -EINVAL, "give a command or --shell, not both");
	if (!o->exec->command && !n_words && !may_miss)
		return err_set(err, -EINVAL,
			"no command is given: want -- COMMAND [ARG...] or --shell STRING");
	if (o->exec->detach && o->terminal == EXEC_TERMINAL_YES)
		return err_set(err, -EINVAL, "options '--detach' and '--tty' exclude each other");
	return 0;
}

static void set_size(struct spec_exec *exec)
{
	struct winsize size = {0};

	for (int fd = 0; fd < 3 && !size.ws_row; fd++)
		if (ioctl(fd, TIOCGWINSZ, &size) < 0)
			size.ws_row = 0;
	exec->rows = size.ws_row ? size.ws_row : ROWS_DEFAULT;
	exec->columns = size.ws_row && size.ws_col ? size.ws_col : COLUMNS_DEFAULT;
}

void exec_options_add_words(struct exec_options *o, char **words, size_t n_words)
{
	for (size_t i = 0; i < n_words; i++)
		spec_words_add(&o->exec->argv, words[i]);
}

void exec_options_finish(struct exec_options *o, const struct cli *cli)
{
	struct spec_exec *exec = o->exec;

	exec->terminal =
		o->terminal == EXEC_TERMINAL_YES ||
		(o->terminal == EXEC_TERMINAL_AUTO && !exec->detach && isatty(0) && isatty(1));
	if (exec->terminal) {
		exec->has_stdin = true;
		set_size(exec);
	}
	if (!exec->source)
		exec->source = mem_dup("agent");
	exec->via = mem_dup("cli");
	exec->actor = mem_dup(cli->actor);
}
