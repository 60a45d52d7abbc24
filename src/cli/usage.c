/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/usage.h"

#define WIDTH        96 /* columns of the whole text */
#define OPTION_WIDTH 30 /* of the left column */

/* Adds words, broken at spaces, behind an indent; the first line starts at column at. */
static void add_wrapped(struct str *out, const char *text, size_t indent, size_t at)
{
	while (*text) {
		size_t n = strcspn(text, " \n");

		if (at + n > WIDTH && at > indent) {
			out->len--; /* the space before it */
			str_printf(out, "\n%*s", (int)indent, "");
			at = indent;
		}
		str_add(out, text, n);
		at += n;
		text += n;
		if (*text == '\n') {
			str_printf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (*text == ' ') {
			str_putc(out, ' ');
			at++;
		}
		text += *text != '\0';
	}
	str_putc(out, '\n');
}

static void add_option(struct str *out, const struct option *o)
{
	size_t start = out->len, len;

	str_puts(out, "  ");
	if (o->letter)
		str_printf(out, "-%c%s", o->letter, o->name[0] ? ", " : "");
	else
		str_puts(out, "    ");
	if (o->name[0])
		str_printf(out, "--%s", o->name);
	if (o->arg)
		str_printf(out, "%s%s", option_arg_may_miss(o) ? "" : " ", o->arg);
	len = out->len - start;
	if (len >= OPTION_WIDTH) {
		str_putc(out, '\n');
		len = 0;
	}
	str_printf(out, "%*s", (int)(OPTION_WIDTH - len), "");
	add_wrapped(out, o->help, OPTION_WIDTH, OPTION_WIDTH);
}

static bool is_listed(const struct option *o)
{
	return o->help && o->kind != OPTION_LATER;
}

static void add_groups(struct str *out, const struct option_group *g)
{
	for (; g && g->options; g++) {
		str_printf(out, "\n%s:\n", g->title);
		for (const struct option *o = g->options; o->name; o++)
			if (is_listed(o))
				add_option(out, o);
	}
}

static void add_later(struct str *out, const struct option_group *g)
{
	scoped_str struct str names = {0};

	for (; g && g->options; g++)
		for (const struct option *o = g->options; o->name; o++)
			if (o->kind == OPTION_LATER)
				str_printf(&names, "%s--%s", names.len ? ", " : "", o->name);
	if (!names.len)
		return;
	str_puts(out, "\nNot part of this version, and refused:\n  ");
	add_wrapped(out, names.p, 2, 2);
}

void usage_add_verb(struct str *out, const struct verb *verb)
{
	str_printf(out, "Usage: cloche %s [OPTIONS]%s%s\n\n", verb->name, *verb->usage ? " " : "",
		verb->usage);
	add_wrapped(out, verb->help, 0, 0);
	if (verb->text) {
		str_putc(out, '\n');
		add_wrapped(out, verb->text, 0, 0);
	}
	add_groups(out, verb->groups);
	add_groups(out, cli_global_groups);
	add_later(out, verb->groups);
}

static void add_class(struct str *out, enum verb_class class)
{
	for (size_t i = 0; verb_table[i]; i++)
		if (verb_table[i]->class == class)
			str_printf(out, "  %-12s %s\n", verb_table[i]->name, verb_table[i]->help);
}

void usage_add_all(struct str *out)
{
	static const char *const titles[VERB_N_CLASSES] = {
		[VERB_RUN] = "Run",
		[VERB_VIEW] = "Read a record",
		[VERB_FILES] = "Take over changed files",
		[VERB_CARE] = "Care for the host",
		[VERB_SERVER] = "Of a control plane",
	};

	str_puts(out, "Usage: cloche VERB [OPTIONS] ...\n\n"
		      "Runs a command in a sandbox and keeps a record of what it did, made from "
		      "outside.\n"
		      "  cloche run -- make test      run it here, print a summary\n"
		      "  cloche tree last             the programs it started\n");
	for (int class = 0; class < VERB_N_CLASSES; class ++) {
		str_printf(out, "\n%s:\n", titles[class]);
		add_class(out, (enum verb_class) class);
	}
	add_groups(out, cli_global_groups);
	str_puts(out, "\nA sandbox's ID may be shortened; `last` is your newest. `cloche help "
		      "VERB` says more.\n");
}
