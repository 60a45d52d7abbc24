/* SPDX-License-Identifier: Apache-2.0 */
/* What was asked for: execs, and the commands that an agent started inside one (derived commands).
 *
 * Which program of an exec is the agent:
 *   1. the topmost one that is known by name as a coding agent, or by the exec's agent field;
 *   2. else the exec's own program, past wrappers and shells (which have to lead to exactly one such), where it
 *      is no shell and no tool that runs many programs by trade (make, npm, pytest, git, ...), and started
 *      a shell with a command string, or two programs or more.
 * Where there is none, the exec itself is the one command and what it started are programs.
 *
 * The agent's commands are the programs right under it, once wrappers (env, timeout, ...) are taken off
 * (view/command_fold.h), with these counted as the agent itself: what it replaced itself by, its own
 * program started again, and a shell that it feeds commands. What a command starts belongs to it.
 *
 * Events are put in order first (view/reorder.h). Memory goes by programs, by distinct files that each
 * wrote and hosts it reached, up to COMMAND_FILES_MAX, and by the heads of outputs. */
#ifndef VIEW_COMMAND_LIST_H
#define VIEW_COMMAND_LIST_H

#include "event/event.h"
#include "util/scoped.h"
#include "util/str.h"
#include "view/process_tree.h"
#include "view/view_filter.h"
#include "view/view_text.h"

#define COMMAND_FILES_MAX  1000 /* and hosts */
#define COMMAND_OUTPUT_MAX 4000 /* bytes of each stream */

enum command_output {
	COMMAND_OUTPUT_UNSEEN, /* nobody looked */
	COMMAND_OUTPUT_HEAD,   /* the beginning (of an exec: beginning and end) */
	COMMAND_OUTPUT_WHOLE,
};

struct command {
	struct slice exec;
	const struct process_node *node; /* of a derived one; else NULL */
	bool derived;
	bool is_agent; /* an exec that has derived commands */
	struct event_list argv;
	struct slice command; /* a shell's string; empty: argv says it */
	struct slice cwd;
	bool has_ended, is_signalled, timed_out, oom_killed, interrupted;
	int64_t exit_code, signal;
	uint64_t seq; /* of its start */
	int64_t started_ns, started_ms, duration_ms;
	struct str streams[2]; /* stdout, stderr */
	int64_t written[2];    /* bytes in all */
	enum command_output output;
	struct event_list files; /* that it wrote, in order */
	/* Names or addresses that it tried to reach, and those of them that were refused. */
	struct event_list hosts, hosts_refused;
	bool files_cut, hosts_cut; /* there were more */
};

struct command_list;

struct command_list *command_list_new(const struct view_filter *filter);
void command_list_free(struct command_list *list);
SCOPED_TYPE(command_list)

void command_list_add(struct command_list *list, const struct event *ev);

/* Calls back for each event that tells of a refusal (a try that ended in EACCES or EPERM, a system call or a destination
 * refused, a secret misused), in the order of happening, with the program that made it, or NULL where that is not known. */
void command_list_watch(struct command_list *list,
	void (*on_refusal)(void *ctx, const struct event *ev, const struct process_node *node),
	void *ctx);

/* Takes in what is still held back and works out the commands, in order of start; returns how many. What
 * command_list_get() gave before is gone then. Those below do it first; more events may follow. */
size_t command_list_settle(struct command_list *list);
const struct command *command_list_get(const struct command_list *list, size_t i);
/* The tree that it is made from: all programs but our plumbing, whatever the filter says. */
struct process_tree *command_list_tree(struct command_list *list);
/* The command that program ran for; NULL where it is none's. Good after command_list_settle(). */
const struct command *command_list_find(
	const struct command_list *list, const struct process_node *node);

/* Whether it went wrong: a status other than 0, or a signal. */
bool command_list_is_failed(const struct command *command);
/* In a word or two, for people: "pytest", "pip install". Escaped. */
void command_list_add_label(struct str *out, const struct command *command);
/* As one would type it. Escaped. */
void command_list_add_line(struct str *out, const struct command *command);

/* `commands --json`. */
void command_list_json(struct command_list *list, struct str *out);
void command_list_text(struct command_list *list, const struct view_style *style, struct str *out);

#endif
