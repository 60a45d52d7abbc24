/* SPDX-License-Identifier: Apache-2.0 */
/* Options as tables: one row an option, one parser and one help text for all verbs. */
#ifndef CLI_OPTION_H
#define CLI_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "util/err.h"

/* What an option does to the member at its offset. */
enum option_kind {
	OPTION_ON,       /* bool: true */
	OPTION_OFF,      /* bool: false */
	OPTION_TEXT,     /* const char *: borrowed from argv */
	OPTION_COPY,     /* char *: a copy, the old one is freed */
	OPTION_WORDS,    /* struct spec_words: one more */
	OPTION_SIZE,     /* int64_t: bytes */
	OPTION_CPUS,     /* int64_t: thousandths */
	OPTION_DURATION, /* int64_t: milliseconds */
	OPTION_COUNT,    /* int64_t: from 1 */
	OPTION_CALL,  /* calls set() with the group's base; value is NULL where it was left out */
	OPTION_LATER, /* known, not built yet: refused; help is the part it belongs to */
};

struct option {
	const char *name; /* without its dashes; NULL ends a table, "" has a letter only */
	char letter;      /* 0: none */
	const char *arg; /* what its value is called; NULL: takes none; "[=...]": only behind a = */
	const char *help; /* NULL: not listed */
	enum option_kind kind;
	size_t offset;
	int (*set)(void *base, const char *value, struct err *err);
	bool early; /* taken before all others, wherever it stands */
};

/* A table and the struct it fills. A list of groups ends with a NULL table. */
struct option_group {
	const char *title;
	const struct option *options;
	size_t offset;                /* of what base() takes, in the verb's struct */
	void *(*base)(void *options); /* NULL: options + offset itself */
	bool is_wall; /* what may pass: not to be lost behind a command, where nobody would notice */
};

/* A group set beside the struct that it fills. */
struct option_target {
	const struct option_group *groups;
	void *options;
};

struct option_words {
	char **items; /* borrowed from argv, in the caller's array of argc */
	size_t n;
	bool has_separator; /* "--" stood before what follows the first n_before */
};

/* Parses args into targets (a list that ends with NULL groups). What is no option goes to words, in order.
 * After n_before words that are no option, or after "--", everything is a word: a command keeps its own
 * options. n_before SIZE_MAX: options may stand anywhere. -EINVAL with one sentence. */
int option_parse(const struct option_target *targets, char **args, size_t n_args, size_t n_before,
	struct option_words *words, struct err *err);

/* The first word from there on that looks like an option of a wall, or NULL: behind a command it is the command's. */
const char *option_find_lost(
	const struct option_target *targets, const struct option_words *words, size_t from);

/* The row for "--name" or "-x" (without the dashes), or NULL. */
const struct option *option_find(const struct option_target *targets, const char *name, size_t len);

/* The candidate nearest to text by edits (one in three letters at most), or NULL. */
struct option_nearest {
	const char *text, *best;
	size_t distance;
};
void option_nearest_offer(struct option_nearest *nearest, const char *candidate);

static inline bool option_arg_may_miss(const struct option *o)
{
	return o->arg && o->arg[0] == '[';
}

#endif
