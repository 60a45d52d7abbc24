/* SPDX-License-Identifier: Apache-2.0 */
/* Two passes over the arguments: the first takes only the early options (a spec file), so that what is
 * named on the command line wins over it wherever it stands. */
#include "cli/option.h"

#include <errno.h>
#include <stdint.h>

#include "spec/spec.h"
#include "spec/spec_parse.h"
#include "util/mem.h"

#define NEAR_MAX 40 /* longest name that a suggestion is looked for */

struct parse {
	const struct option_target *targets;
	char **args;
	size_t n_args, at; /* at: the next argument */
	bool early;        /* which pass this is */
	struct err *err;
};

struct found {
	const struct option *option;
	char *base;
};

static struct found find(
	const struct option_target *targets, const char *name, size_t len, char letter)
{
	for (; targets->groups; targets++)
		for (const struct option_group *g = targets->groups; g->options; g++)
			for (const struct option *o = g->options; o->name; o++) {
				void *base = (char *)targets->options + g->offset;
				bool hit = name ? len && strlen(o->name) == len &&
				                           !strncmp(o->name, name, len)
				                : o->letter == letter;

				if (hit)
					return (struct found){o,
						g->base && targets->options ? g->base(base) : base};
			}
	return (struct found){0};
}

const struct option *option_find(const struct option_target *targets, const char *name, size_t len)
{
	return find(targets, len == 1 ? NULL : name, len, name[0]).option;
}

static bool is_of_wall(const struct option_target *targets, const char *name, size_t len)
{
	for (; targets->groups; targets++)
		for (const struct option_group *g = targets->groups; g->options; g++)
			for (const struct option *o = g->options; g->is_wall && o->name; o++)
				if (len && strlen(o->name) == len && !strncmp(o->name, name, len))
					return true;
	return false;
}

const char *option_find_lost(
	const struct option_target *targets, const struct option_words *words, size_t from)
{
	for (size_t i = from; i < words->n; i++) {
		const char *word = words->items[i];

		if (strncmp(word, "--", 2) == 0 &&
			is_of_wall(targets, word + 2, strcspn(word + 2, "=")))
			return word;
	}
	return NULL;
}

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Levenshtein's distance; both are at most NEAR_MAX long. */
static size_t distance(const char *a, const char *b)
{
	size_t row[NEAR_MAX + 1], n = strlen(b);

	for (size_t k = 0; k <= n; k++)
		row[k] = k;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t k = 1; k <= n; k++) {
			size_t above = row[k];

			row[k] = min3(row[k - 1] + 1, above + 1, diagonal + (a[i - 1] != b[k - 1]));
			diagonal = above;
		}
	}
	return row[n];
}

void option_nearest_offer(struct option_nearest *nearest, const char *candidate)
{
	size_t len = strlen(nearest->text), d;

	if (len > NEAR_MAX || strlen(candidate) > NEAR_MAX)
		return;
	d = distance(nearest->text, candidate);
	if (d > (len + 2) / 3 || (nearest->best && d >= nearest->distance))
		return;
	nearest->best = candidate;
	nearest->distance = d;
}

static int refuse_unknown(const struct parse *p, const char *arg, size_t name_len)
{
	scoped_mem char *name = mem_copy(arg + 2, name_len);
	struct option_nearest nearest = {.text = name};

	for (const struct option_target *t = p->targets; t->groups; t++)
		for (const struct option_group *g = t->groups; g->options; g++)
			for (const struct option *o = g->options; o->name; o++)
				if (o->help && o->name[0] && o->kind != OPTION_LATER)
					option_nearest_offer(&nearest, o->name);
	if (nearest.best)
		return err_set(p->err, -EINVAL, "unknown option '--%s': did you mean '--%s'?", name,
			nearest.best);
	return err_set(p->err, -EINVAL, "unknown option '--%s'", name);
}

static int set_copy(char **at, const char *value)
{
	free(*at);
	*at = mem_dup(value);
	return 0;
}

static int set_member(const struct found *f, const char *value, struct err *err)
{
	const struct option *o = f->option;
	void *at = f->base + o->offset;

	switch (o->kind) {
	case OPTION_ON:
	case OPTION_OFF:
		*(bool *)at = o->kind == OPTION_ON;
		return 0;
	case OPTION_TEXT:
		*(const char **)at = value;
		return 0;
	case OPTION_COPY:
		return set_copy(at, value);
	case OPTION_WORDS:
		spec_words_add(at, value);
		return 0;
	case OPTION_SIZE:
		return spec_parse_size(value, at, err);
	case OPTION_CPUS:
		return spec_parse_cpus(value, at, err);
	case OPTION_DURATION:
		return spec_parse_duration(value, at, err);
	case OPTION_COUNT:
		return spec_parse_count(value, at, err);
	case OPTION_CALL:
		return o->set(f->base, value, err);
	case OPTION_LATER:
		return err_set(err, -EINVAL, "%s is not part of this version", o->help);
	}
	return -EINVAL;
}

/* Sets it in the pass it belongs to; shown is how the user wrote it. */
static int apply(const struct parse *p, const struct found *f, const char *value, const char *shown)
{
	int r;

	if (f->option->early != p->early && f->option->kind != OPTION_LATER)
		return 0;
	r = set_member(f, value, p->err);
	return r < 0 ? err_wrap(p->err, -EINVAL, "option '%s'", shown) : 0;
}

static int parse_long(struct parse *p, const char *arg)
{
	const char *eq = strchr(arg, '=');
	size_t len = eq ? (size_t)(eq - arg) - 2 : strlen(arg) - 2;
	struct found f = find(p->targets, arg + 2, len, 0);
	scoped_mem char *shown = mem_copy(arg, len + 2);
	const char *value = eq ? eq + 1 : NULL;

	if (!f.option)
		return refuse_unknown(p, arg, len);
	if (f.option->kind == OPTION_LATER)
		return apply(p, &f, NULL, shown);
	if (!f.option->arg && value)
		return err_set(p->err, -EINVAL, "option '%s' takes no value", shown);
	if (f.option->arg && !value && !option_arg_may_miss(f.option)) {
		if (p->at == p->n_args)
			return err_set(p->err, -EINVAL, "option '%s' needs a value: %s %s", shown,
				shown, f.option->arg);
		value = p->args[p->at++];
	}
	return apply(p, &f, value, shown);
}

/* -tT, -eK=V, -e K=V. */
static int parse_letters(struct parse *p, const char *arg)
{
	for (const char *c = arg + 1; *c; c++) {
		struct found f = find(p->targets, NULL, 0, *c);
		char shown[] = {'-', *c, '\0'};
		const char *value = NULL;
		int r;

		if (!f.option)
			return err_set(p->err, -EINVAL, "unknown option '%s' in '%s'", shown, arg);
		if (f.option->arg && f.option->kind != OPTION_LATER &&
			!option_arg_may_miss(f.option)) {
			value = c[1] ? c + 1 : p->at < p->n_args ? p->args[p->at++] : NULL;
			if (!value)
				return err_set(p->err, -EINVAL, "option '%s' needs a value: %s %s",
					shown, shown, f.option->arg);
		}
		r = apply(p, &f, value, shown);
		if (r < 0 || value)
			return r;
	}
	return 0;
}

static int parse_pass(struct parse *p, size_t n_before, struct option_words *words)
{
	bool only_words = false;

	*words = (struct option_words){.items = words->items};
	for (p->at = 0; p->at < p->n_args;) {
		char *arg = p->args[p->at++];
		int r = 0;

		if (only_words || arg[0] != '-' || !arg[1]) {
			words->items[words->n++] = arg;
			only_words = only_words || words->n > n_before;
		} else if (strcmp(arg, "--") == 0) {
			only_words = words->has_separator = true;
		} else if (arg[1] == '-') {
			r = parse_long(p, arg);
		} else {
			r = parse_letters(p, arg);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int option_parse(const struct option_target *targets, char **args, size_t n_args, size_t n_before,
	struct option_words *words, struct err *err)
{
	struct parse p = {
		.targets = targets, .args = args, .n_args = n_args, .early = true, .err = err};
	int r = parse_pass(&p, n_before, words);

	p.early = false;
	return r < 0 ? r : parse_pass(&p, n_before, words);
}
