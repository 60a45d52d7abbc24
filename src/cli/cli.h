/* SPDX-License-Identifier: Apache-2.0 */
/* What every verb knows of how it was called: the global options, resolved. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <sys/types.h>

#include "cli/option.h"
#include "util/str.h"
#include "view/view_text.h"

#define CLI_STATE_DEFAULT "/var/lib/cloche"
#define CLI_RUN_DEFAULT   "/run/cloche"

/* Exit statuses beside those of commands. */
#define CLI_NO        1   /* the answer was no */
#define CLI_USAGE     2   /* wrong usage */
#define CLI_FAILURE   125 /* Cloche itself failed */
#define CLI_FORBIDDEN 126 /* --within does not let it */

enum cli_color {
	CLI_COLOR_AUTO,
	CLI_COLOR_ALWAYS,
	CLI_COLOR_NEVER,
};

struct elsewhere;

struct cli {
	const char *program; /* as it was started; may be NULL */
	char **argv;         /* all of it; ends with NULL */
	/* The control plane that is asked instead of this host, and how; borrowed. NULL: this host. */
	const char *server, *key, *key_file, *server_ca;
	const struct elsewhere *elsewhere; /* NULL: records are those of state_dir */
	char *state_dir;                   /* absolute */
	const char *run_dir;
	bool json, jsonl, quiet, verbose, help, version;
	enum cli_color color;
	uid_t uid; /* who asks: behind sudo the user, else the real one */
	gid_t gid;
	const char *actor; /* who it is for, as ledger and record name it: "uid:1000" */
	char own_actor[24];
};

extern const struct option_group cli_global_groups[];

/* Fills in what the options and the environment left open. */
int cli_settle(struct cli *cli, struct err *err);
void cli_done(struct cli *cli);
/* Whether what is asked for is a control plane's: for options whose value is a path of the host, while they are parsed. Known
 * from the early options on, wherever those stand. */
bool cli_is_elsewhere(void);
/* For verbs that make or change sandboxes: -EPERM, with what to do, where the caller cannot. */
int cli_need_root(struct err *err);

/* The caller's home: that of the user behind sudo, else $HOME. Empty where there is none. */
void cli_home(const struct cli *cli, struct str *out);

/* Whether a stream (1 or 2) is to be coloured. */
bool cli_has_color(const struct cli *cli, int fd);
/* For what goes to stdout: colors and the terminal's width. */
struct view_style cli_style(const struct cli *cli);
/* Writes to stdout at once. A reader that has gone ends us by SIGPIPE, as usual. */
int cli_print(const struct str *text, struct err *err);

#endif
