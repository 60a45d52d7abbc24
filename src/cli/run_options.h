/* SPDX-License-Identifier: Apache-2.0 */
/* What run has beside the options of create and exec. */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include "cli/create_options.h"
#include "cli/exec_options.h"

enum run_apply {
	RUN_APPLY_NO,
	RUN_APPLY_ALWAYS,
	RUN_APPLY_ON_SUCCESS,
};

/* --fail-on, as bits. */
#define RUN_FAIL_REFUSED    1u
#define RUN_FAIL_DENIED     2u
#define RUN_FAIL_INCOMPLETE 4u
#define RUN_FAIL_COMMAND    8u
#define RUN_FAIL_STATUS     123

struct run_options {
	struct create_options create;
	struct exec_options exec;
	bool has_workdir; /* -w was given */
	bool rw, ro;      /* how the current folder is shown; neither: cow */
	enum run_apply apply;
	bool no_summary;
	unsigned fail_on;
	const char *id_file; /* NULL: none; borrowed from argv, as is the next */
	const char *markdown_file;
};

void run_options_init(void *options); /* trace on */
void run_options_done(void *options);
int run_options_check(void *options, char **args, size_t n_args, struct err *err);
/* Everything between parsing and running: the current folder, the caller's PATH folders, then what
 * create_options_finish() and exec_options_finish() do. */
int run_options_finish(
	struct run_options *o, const struct cli *cli, char **args, size_t n_args, struct err *err);

extern const struct option_group run_options_groups[];

#endif
