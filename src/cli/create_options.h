/* SPDX-License-Identifier: Apache-2.0 */
/* The options of create, which run has too. They fill a spec. */
#ifndef CLI_CREATE_OPTIONS_H
#define CLI_CREATE_OPTIONS_H

#include "cli/cli.h"
#include "cli/image_choice.h"
#include "cli/option.h"
#include "spec/spec.h"

struct create_options {
	struct spec *spec;
	const char *agent;   /* --agent, borrowed; NULL: by program */
	const char *program; /* run: the caller's own word for what is started, borrowed */
	struct image_choice image;
	struct spec_words secret_files; /* --secret-file, as written */
	const char *hidden;             /* --hidden: secrets' values (secret_values.h); borrowed */
	bool is_forbidden;              /* by what within says: this is why it failed */
	const char *within;    /* --within: what the spec may name (create_within.h); borrowed */
	size_t n_early_mounts; /* mounts that came from --spec: their paths are not resolved yet */
};

void create_options_init(struct create_options *o);
void create_options_done(struct create_options *o);

/* The first part of what is left to do after parsing, for a spec that is only laid over another: paths of a spec file,
 * the agent's profile, sets of rules. */
int create_options_shape(struct create_options *o, const struct cli *cli, struct err *err);
/* What is left to do after parsing: owner, paths of a spec file, then spec_check(). */
int create_options_finish(struct create_options *o, const struct cli *cli, struct err *err);

/* Rows for a verb's groups: each is one element, `at` the offset of struct create_options. */
extern const struct option create_options_box[], create_options_trace[], create_options_other[];
extern const struct option network_options[]; /* network_options.c */
void *create_options_spec(void *base);

#define CREATE_OPTIONS_GROUPS(at) \
	{"Sandbox", create_options_box, (at), create_options_spec}, \
		{"Trace and record", create_options_trace, (at), create_options_spec}, \
		{"Network", network_options, (at), .is_wall = true}, \
	{ \
		"More of the sandbox", create_options_other, (at) \
	}

#endif
