/* SPDX-License-Identifier: Apache-2.0 */
/* The options of exec, which run has too. They fill a spec_exec. */
#ifndef CLI_EXEC_OPTIONS_H
#define CLI_EXEC_OPTIONS_H

#include "cli/cli.h"
#include "cli/option.h"
#include "spec/spec.h"

enum exec_terminal {
	EXEC_TERMINAL_AUTO, /* where stdin and stdout are terminals */
	EXEC_TERMINAL_YES,
	EXEC_TERMINAL_NO,
};

struct exec_options {
	struct spec_exec *exec;
	enum exec_terminal terminal;
};

void exec_options_init(struct exec_options *o);
void exec_options_done(struct exec_options *o);

/* A command there must be, as words or as --shell, never both; an image may have one (may_miss). */
int exec_options_check(
	const struct exec_options *o, size_t n_words, bool may_miss, struct err *err);
void exec_options_add_words(struct exec_options *o, char **words, size_t n_words);
/* Fills in the terminal and its size, source, via and actor. With a terminal there is stdin. */
void exec_options_finish(struct exec_options *o, const struct cli *cli);

extern const struct option exec_options_table[];
void *exec_options_exec(void *base);
extern const struct option exec_options_terminal[];

#define EXEC_OPTIONS_GROUPS(at) \
	{"Command", exec_options_table, (at), exec_options_exec}, \
	{ \
		"Terminal", exec_options_terminal, (at) \
	}

#endif
