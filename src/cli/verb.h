/* SPDX-License-Identifier: Apache-2.0 */
/* A verb: one file verb_<name>.c with one table row, `const struct verb verb_<name>`. */
#ifndef CLI_VERB_H
#define CLI_VERB_H

#include "cli/cli.h"
#include "util/err.h"

enum verb_class {
	VERB_RUN,    /* running things */
	VERB_VIEW,   /* reading a record */
	VERB_FILES,  /* taking over what was changed */
	VERB_CARE,   /* the host */
	VERB_SERVER, /* what a control plane alone has */
	VERB_N_CLASSES,
};

#define VERB_MANY 1000000U

struct verb {
	const char *name;
	enum verb_class class;
	const char *usage;                 /* behind the options: "ID [-- PATH...]" */
	const char *help;                  /* one line, lower case, no full stop */
	const char *text;                  /* more for --help, or NULL */
	const struct option_group *groups; /* NULL: global options only */
	size_t options_size;               /* of the struct they fill, zeroed before init() */
	void (*init)(void *options);
	void (*done)(void *options);
	unsigned min_args, max_args;
	bool is_command; /* what follows n_before arguments is a command: its options are its own */
	unsigned n_before; /* exec: 1, the sandbox */
	bool is_of_server; /* of a control plane alone: run is NULL */
	/* What the tables cannot say: options that exclude each other. Negative: wrong usage. May be NULL. */
	int (*check)(void *options, char **args, size_t n_args, struct err *err);
	/* Whether run() failed by what --within says: the status is CLI_FORBIDDEN. May be NULL. */
	bool (*is_forbidden)(const void *options);
	/* The exit status, or a negative errno with the reason: printed, and the status is CLI_FAILURE. */
	int (*run)(
		const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
};

/* All verbs, in the order of the help; ends with NULL. */
extern const struct verb *const verb_table[];

const struct verb *verb_find(const char *name); /* NULL where there is none */
/* For a name that is none: a sentence with the nearest one, or with the part it comes with. */
int verb_refuse(const char *name, struct err *err);

extern const struct verb verb_accounts;
extern const struct verb verb_allow_list;
extern const struct verb verb_apply;
extern const struct verb verb_audit;
extern const struct verb verb_blame;
extern const struct verb verb_changes;
extern const struct verb verb_commands;
extern const struct verb verb_completion;
extern const struct verb verb_create;
extern const struct verb verb_diff;
extern const struct verb verb_discard;
extern const struct verb verb_doctor;
extern const struct verb verb_events;
extern const struct verb verb_exec;
extern const struct verb verb_export;
extern const struct verb verb_files;
extern const struct verb verb_fork;
extern const struct verb verb_gc;
extern const struct verb verb_inspect;
extern const struct verb verb_keys;
extern const struct verb verb_log;
extern const struct verb verb_manifest;
extern const struct verb verb_net;
extern const struct verb verb_net_rules;
extern const struct verb verb_pause;
extern const struct verb verb_ps;
extern const struct verb verb_reindex;
extern const struct verb verb_resume;
extern const struct verb verb_rm;
extern const struct verb verb_run;
extern const struct verb verb_secrets;
extern const struct verb verb_serve;
extern const struct verb verb_show;
extern const struct verb verb_stats;
extern const struct verb verb_stop;
extern const struct verb verb_suspend;
extern const struct verb verb_timeline;
extern const struct verb verb_tree;
extern const struct verb verb_verify;
extern const struct verb verb_wake;
extern const struct verb verb_watch;
extern const struct verb verb_watch_files;
extern const struct verb verb_webhooks;

#endif
