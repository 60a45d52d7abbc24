/* SPDX-License-Identifier: Apache-2.0 */
/* What sort of program this is, told from its name. Pure. */
#ifndef VIEW_PROGRAM_CLASS_H
#define VIEW_PROGRAM_CLASS_H

#include <stdbool.h>

#include "event/event.h"

struct slice program_class_base(struct slice path); /* behind the last slash */

/* The name a person would give: "pytest" for `python3 -m pytest`, "npm" for node running npm's script, "agent"
 * for `python3 agent.py`, else the file's. path may be empty: argv alone is asked then. */
struct slice program_class_name(const struct event_list *argv, struct slice path);

bool program_class_is_shell(struct slice name);
bool program_class_is_interpreter(struct slice path); /* python, node and their like */
/* Runs many programs of its own in the way of its trade (make, cargo, npm, pytest, git, gcc): what it
 * starts are no commands that somebody thought of. */
bool program_class_is_tool(struct slice name);
/* A coding agent we know by name. */
bool program_class_is_agent(struct slice name);

/* The script that an interpreter runs (a module's name for -m); empty: none, or argv's program is no interpreter. */
struct slice program_class_script(const struct event_list *argv, struct slice path);

/* Index of the command in the arguments of a wrapper (env, timeout, nice, ...), from is its own; 0: none. */
size_t program_class_unwrap(const struct event_list *argv, size_t from);

/* How a shell was started. */
enum program_class_shell {
	PROGRAM_CLASS_STRING,  /* -c: *ret_at is the string's index */
	PROGRAM_CLASS_SCRIPT,  /* a file: *ret_at is its index */
	PROGRAM_CLASS_SESSION, /* reads its commands from what it is given */
};
enum program_class_shell program_class_shell(
	const struct event_list *argv, size_t from, size_t *ret_at);

#endif
