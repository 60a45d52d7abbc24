/* SPDX-License-Identifier: Apache-2.0 */
/* What ran: a tree with a node for each successful exec.
 *
 * - A program that replaces another in the same process nests under it and has its pid.
 * - A fork without exec adds no node, nor does a thread; what they start attaches to the closest program
 *   that did exec.
 * - How a process ended stands on every program it was.
 * - A pid used again is another process: forks and exits say where one ends.
 * - Nodes deeper than PROCESS_TREE_DEPTH attach to the ancestor there and say so (moved_up).
 *
 * Events are put in order first (view/reorder.h). Memory goes by programs started; live processes are
 * forgotten when they exit. */
#ifndef VIEW_PROCESS_TREE_H
#define VIEW_PROCESS_TREE_H

#include "event/event.h"
#include "util/scoped.h"
#include "util/str.h"
#include "view/view_filter.h"
#include "view/view_text.h"

#define PROCESS_TREE_DEPTH 200

struct process_node {
	struct process_node *parent, *first_child, *last_child, *next; /* next: sibling */
	struct process_node *before; /* the program this one replaced in its process */
	struct process_node *shown_parent, *shown_first, *shown_last, *shown_next;
	size_t index; /* in order of start */
	uint64_t seq;
	int64_t pid, uid; /* pid 0: not known */
	int64_t started_ns, started_ms, ended_ns, ended_ms;
	int64_t exit_code, signal;
	int64_t stdout_file, stderr_file; /* inodes; 0: not known */
	struct slice path, cwd, exec;
	const struct event_list *argv;
	bool has_uid, has_ended, is_signalled, argv_truncated, path_unresolved;
	bool entered, internal, moved_up;
	bool is_replaced; /* another program took its place in its process */
	bool is_hidden; /* not what the filter asks for; its children show under the closest that is */
};

struct process_tree;

struct process_tree *process_tree_new(const struct view_filter *filter);
void process_tree_free(struct process_tree *tree);
SCOPED_TYPE(process_tree)

void process_tree_add(struct process_tree *tree, const struct event *ev);
/* The same for a caller that puts events in order itself. */
void process_tree_take(struct process_tree *tree, const struct event *ev);

/* Takes in what is still held back, and links what the filter shows. Each of those below does it first; more
 * events may follow. Node i of n, in order of start; nodes stay where they are as long as the tree. */
size_t process_tree_settle(struct process_tree *tree);
struct process_node *process_tree_get(const struct process_tree *tree, size_t i);
/* The program that process pid runs now, or the closest above it; NULL where it is not known. */
struct process_node *process_tree_find(const struct process_tree *tree, int64_t pid);

/* `tree --json`: the list of roots. */
void process_tree_json(struct process_tree *tree, struct str *out);
void process_tree_text(struct process_tree *tree, const struct view_style *style, struct str *out);

struct process_tree_counts {
	uint64_t started; /* shown nodes */
	uint64_t
		failed; /* of these, processes that ended with another status than 0, or by a signal */
	uint64_t running; /* have no end in the record */
	uint64_t entered;
};
void process_tree_count(struct process_tree *tree, struct process_tree_counts *ret_counts);

#endif
