/* SPDX-License-Identifier: Apache-2.0 */
/* What each verb does at a control plane: one row a verb in remote_verbs.c. */
#ifndef REMOTE_REMOTE_VERBS_H
#define REMOTE_REMOTE_VERBS_H

#include "cli/verb.h"

/* As struct entry's. What cannot be had over HTTP is refused with a sentence: CLI_USAGE. */
int remote_verbs_run(const struct cli *cli, const struct verb *verb, void *options, char **args,
	size_t n_args, struct err *err);
/* Whether there is a row for it: there is for each. */
bool remote_verbs_knows(const struct verb *verb);
/* For an option that a server cannot do: says so, and gives CLI_USAGE. */
int remote_verbs_refuse(const struct verb *verb, const char *what, const char *advice);

/* As a verb's run(); remote_<verb>.c. */
int remote_changes(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_create(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_diff(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_discard(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_exec(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_fork(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_inspect(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_manifest(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_net_rules(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_pause(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_ps(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_resume(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_rm(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_stop(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_suspend(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_wake(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_watch_files(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_accounts(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_audit(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_keys(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_secrets(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);
int remote_webhooks(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err);

#endif
