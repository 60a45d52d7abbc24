/* SPDX-License-Identifier: Apache-2.0 */
/* cloche completion: a shell's completion script, written from the tables. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/verb.h"
#include "util/str.h"

static void add_bash_options(struct str *out, const struct option_group *g)
{
	for (; g && g->options; g++)
		for (const struct option *o = g->options; o->name; o++)
			if (o->help && o->name[0] && o->kind != OPTION_LATER)
				str_printf(out, " --%s", o->name);
}

static void add_bash(struct str *out)
{
	str_puts(out, "# source <(cloche completion bash)\n_cloche() {\n"
		      "\tlocal word=${COMP_WORDS[COMP_CWORD]} verb='' i options\n"
		      "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		      "\t\t[[ ${COMP_WORDS[i]} == -* ]] || { verb=${COMP_WORDS[i]}; break; }\n"
		      "\tdone\n\toptions=\"");
	add_bash_options(out, cli_global_groups);
	str_puts(out, "\"\n\tcase $verb in\n\t'') mapfile -t COMPREPLY < <(compgen -W \"");
	for (size_t i = 0; verb_table[i]; i++)
		str_printf(out, "%s%s", i ? " " : "", verb_table[i]->name);
	str_puts(out, " $options\" -- \"$word\"); return ;;\n");
	for (size_t i = 0; verb_table[i]; i++) {
		if (!verb_table[i]->groups)
			continue;
		str_printf(out, "\t%s) options+=\"", verb_table[i]->name);
		add_bash_options(out, verb_table[i]->groups);
		str_puts(out, "\" ;;\n");
	}
	str_puts(out, "\tesac\n\tif [[ $word == -* ]]; then\n"
		      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
		      "\telif [[ $verb != run && $verb != create ]]; then\n"
		      "\t\tmapfile -t COMPREPLY < <(compgen -W \"last $(cloche ps --all --quiet "
		      "2>/dev/null)\" -- \"$word\")\n"
		      "\tfi\n}\ncomplete -o default -F _cloche cloche\n");
}

/* Single quotes are the one thing that ends a quoted word in zsh and fish. */
static void add_quoted(struct str *out, const char *text, const char *also)
{
	for (; *text; text++)
		if (*text == '\'')
			str_puts(out, "'\\''");
		else if (strchr(also, *text))
			str_printf(out, "\\%c", *text);
		else
			str_putc(out, *text);
}

static void add_zsh_options(struct str *out, const struct option_group *g)
{
	for (; g && g->options; g++)
		for (const struct option *o = g->options; o->name; o++) {
			if (!o->help || !o->name[0] || o->kind == OPTION_LATER)
				continue;
			str_printf(out, " '--%s[", o->name);
			add_quoted(out, o->help, "[]:");
			str_puts(out, o->arg && !option_arg_may_miss(o) ? "]:value:_files'" : "]'");
		}
}

static void add_zsh(struct str *out)
{
	str_puts(out, "#compdef cloche\n_cloche() {\n\tlocal -a verbs options\n\tverbs=(");
	for (size_t i = 0; verb_table[i]; i++) {
		str_printf(out, "'%s:", verb_table[i]->name);
		add_quoted(out, verb_table[i]->help, ":");
		str_puts(out, "' ");
	}
	str_puts(out, ")\n\toptions=(");
	add_zsh_options(out, cli_global_groups);
	str_puts(out, ")\n\tif (( CURRENT == 2 )); then _describe verb verbs; return; fi\n\tcase "
		      "$words[2] in\n");
	for (size_t i = 0; verb_table[i]; i++) {
		str_printf(out, "\t%s) options+=(", verb_table[i]->name);
		add_zsh_options(out, verb_table[i]->groups);
		str_puts(out, ") ;;\n");
	}
	str_puts(out, "\tesac\n\t_arguments $options '*:id or file:{compadd last ${(f)\"$(cloche "
		      "ps --all --quiet "
		      "2>/dev/null)\"}; _files}'\n}\n_cloche \"$@\"\n");
}

static void add_fish_options(struct str *out, const char *condition, const struct option_group *g)
{
	for (; g && g->options; g++)
		for (const struct option *o = g->options; o->name; o++) {
			if (!o->help || !o->name[0] || o->kind == OPTION_LATER)
				continue;
			str_printf(out, "complete -c cloche %s -l %s%s -d '", condition, o->name,
				o->arg && !option_arg_may_miss(o) ? " -r" : "");
			add_quoted(out, o->help, "\\");
			str_puts(out, "'\n");
		}
}

static void add_fish(struct str *out)
{
	for (size_t i = 0; verb_table[i]; i++) {
		scoped_str struct str condition = {0};

		str_printf(out, "complete -c cloche -n __fish_use_subcommand -a %s -d '",
			verb_table[i]->name);
		add_quoted(out, verb_table[i]->help, "\\");
		str_puts(out, "'\n");
		str_printf(&condition, "-n '__fish_seen_subcommand_from %s'", verb_table[i]->name);
		add_fish_options(out, condition.p, verb_table[i]->groups);
	}
	add_fish_options(out, "", cli_global_groups);
}

static const struct {
	const char *name;
	void (*add)(struct str *out);
} shells[] = {{"bash", add_bash}, {"zsh", add_zsh}, {"fish", add_fish}};

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (strcmp(shells[i].name, args[0]) == 0)
			return 0;
	return err_set(err, -EINVAL, "'%s': want bash, zsh or fish", args[0]);
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	scoped_str struct str out = {0};

	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (strcmp(shells[i].name, args[0]) == 0)
			shells[i].add(&out);
	if (fwrite(out.p, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
		return err_set(err, -errno, "write: %m");
	return 0;
}

const struct verb verb_completion = {
	.name = "completion",
	.class = VERB_CARE,
	.usage = "bash|zsh|fish",
	.help = "print a completion script for your shell",
	.text = "In bash: source <(cloche completion bash)",
	.min_args = 1,
	.max_args = 1,
	.check = check,
	.run = run,
};
