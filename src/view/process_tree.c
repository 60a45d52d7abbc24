/* SPDX-License-Identifier: Apache-2.0 */
#include "view/process_tree.h"

#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"
#include "view/intern.h"
#include "view/reorder.h"

/* A process that lives. */
struct process {
	int64_t pid, ppid;
	struct process_node *node; /* the program it runs, or the closest above it */
	bool did_exec;             /* node is its own */
	bool has_ended;            /* kept until its pid is forked again: see take_exit() */
	struct slice exec;
};

struct process_tree {
	struct view_filter filter;
	struct reorder *reorder;
	struct intern *intern;
	struct map *processes; /* pid to struct process */
	struct process_node **nodes;
	size_t n_nodes, cap_nodes, *depths;
	bool is_lossy; /* something was dropped: a fork or an exit may be missing */
};

struct process_tree *process_tree_new(const struct view_filter *filter)
{
	struct process_tree *tree = new0(struct process_tree);

	tree->filter = *filter;
	tree->reorder = reorder_new();
	tree->intern = intern_new();
	tree->processes = map_new();
	return tree;
}

void process_tree_free(struct process_tree *tree)
{
	struct slice key;
	void *process;

	if (!tree)
		return;
	for (size_t i = 0; map_next(tree->processes, &i, &key, &process);)
		free(process);
	for (size_t i = 0; i < tree->n_nodes; i++)
		free(tree->nodes[i]);
	free(tree->nodes);
	free(tree->depths);
	map_free(tree->processes);
	intern_free(tree->intern);
	reorder_free(tree->reorder);
	free(tree);
}

static struct process *find_process(const struct process_tree *tree, int64_t pid)
{
	unsigned long long key = (unsigned long long)pid;

	return pid ? map_find(tree->processes, map_int_key(&key)) : NULL;
}

/* A new process under this pid; whatever had it before is gone. */
static struct process *begin_process(struct process_tree *tree, int64_t pid)
{
	unsigned long long key = (unsigned long long)pid;
	void **slot = map_slot(tree->processes, map_int_key(&key));

	free(*slot);
	*slot = new0(struct process);
	((struct process *)*slot)->pid = pid;
	return *slot;
}

static void take_fork(struct process_tree *tree, const struct event *ev)
{
	const struct process *parent;
	struct process_node *node;
	struct process *child;

	if ((event_has(ev, thread) && ev->thread) || ev->child_pid == 0)
		return;
	parent = find_process(tree, ev->pid);
	node = parent ? parent->node : NULL;
	child = begin_process(tree, ev->child_pid);
	child->ppid = ev->pid;
	child->node = node;
	child->exec = intern_text(tree->intern, ev->exec);
}

/* A first thread that ends does not end its process, and when another thread then execs, the kernel gives
 * that one the pid. So an ended process is only forgotten when a fork gives its pid away. */
static void take_exit(struct process_tree *tree, const struct event *ev)
{
	struct process *process = find_process(tree, ev->pid);

	if (!process || (event_has(ev, thread) && ev->thread))
		return;
	for (struct process_node *node = process->did_exec ? process->node : NULL; node;
		node = node->before) {
		node->has_ended = true;
		node->exit_code = ev->code;
		node->is_signalled = event_has(ev, signal) && ev->signal != 0;
		node->signal = node->is_signalled ? ev->signal : 0;
		node->ended_ns = ev->guest_ns;
		node->ended_ms = ev->wall_ms;
	}
	process->has_ended = true;
}

static void revive(struct process *process)
{
	for (struct process_node *node = process->did_exec ? process->node : NULL; node;
		node = node->before)
		node->has_ended = node->is_signalled = false;
	process->has_ended = false;
}

/* Whether what we know of this pid is another, earlier process whose exit, and the fork since, were lost. */
static bool is_stale(
	const struct process_tree *tree, const struct process *process, const struct event *ev)
{
	if (!slice_eq(ev->exec, process->exec) ||
		(process->has_ended && (ev->entered || tree->is_lossy)))
		return true;
	return tree->is_lossy && event_has(ev, ppid) && ev->ppid > 1 && process->ppid &&
	       ev->ppid != process->ppid;
}

static struct process *process_of(struct process_tree *tree, const struct event *ev)
{
	struct process *process = find_process(tree, ev->pid);
	const struct process *parent;
	struct process_node *above;

	if (process && !is_stale(tree, process, ev)) {
		if (process->has_ended)
			revive(process);
		return process;
	}
	parent = event_has(ev, ppid) && ev->ppid != ev->pid ? find_process(tree, ev->ppid) : NULL;
	above = parent ? parent->node : NULL;
	process = begin_process(tree, ev->pid);
	process->ppid = ev->ppid;
	process->node = above;
	process->exec = intern_text(tree->intern, ev->exec);
	return process;
}

static struct process_node *new_node(struct process_tree *tree, const struct event *ev)
{
	struct process_node *node = new0(struct process_node);

	if (tree->n_nodes == tree->cap_nodes) {
		tree->cap_nodes = tree->cap_nodes ? tree->cap_nodes * 2 : 64;
		tree->nodes = mem_grow(tree->nodes, tree->cap_nodes, sizeof(struct process_node *));
		tree->depths = mem_grow(tree->depths, tree->cap_nodes, sizeof(*tree->depths));
	}
	node->index = tree->n_nodes;
	tree->depths[tree->n_nodes] = 0;
	tree->nodes[tree->n_nodes++] = node;
	node->seq = ev->seq;
	node->pid = ev->pid;
	node->uid = ev->uid;
	node->has_uid = event_has(ev, uid);
	node->started_ns = ev->guest_ns;
	node->started_ms = ev->wall_ms;
	node->stdout_file = ev->stdout_file;
	node->stderr_file = ev->stderr_file;
	node->path = intern_text(tree->intern, ev->path);
	node->cwd = intern_text(tree->intern, ev->cwd);
	node->exec = intern_text(tree->intern, ev->exec);
	node->argv = intern_list(tree->intern, &ev->argv);
	node->argv_truncated = event_has(ev, argv_truncated) && ev->argv_truncated;
	node->path_unresolved = event_has(ev, path_unresolved) && ev->path_unresolved;
	node->entered = event_has(ev, entered) && ev->entered;
	node->internal = ev->internal;
	node->is_hidden = !view_filter_takes(&tree->filter, ev);
	return node;
}

static void attach(
	struct process_tree *tree, struct process_node *node, struct process_node *parent)
{
	for (; parent && tree->depths[parent->index] >= PROCESS_TREE_DEPTH; parent = parent->parent)
		node->moved_up = true;
	if (!parent)
		return;
	node->parent = parent;
	tree->depths[node->index] = tree->depths[parent->index] + 1;
	if (parent->last_child)
		parent->last_child->next = node;
	else
		parent->first_child = node;
	parent->last_child = node;
}

static void take_exec(struct process_tree *tree, const struct event *ev)
{
	struct process *process;
	struct process_node *node;

	if (event_has(ev, result) && ev->result != 0)
		return;
	node = new_node(tree, ev);
	if (ev->pid == 0)
		return;
	process = process_of(tree, ev);
	attach(tree, node, process->node);
	node->before = process->did_exec ? process->node : NULL;
	if (node->before)
		node->before->is_replaced = true;
	process->node = node;
	process->did_exec = true;
}

static bool is_ours(const struct event *ev)
{
	return ev->kind == EVENT_PROCESS_EXEC || ev->kind == EVENT_PROCESS_FORK ||
	       ev->kind == EVENT_PROCESS_EXIT || ev->kind == EVENT_TRACE_DROPPED ||
	       ev->kind == EVENT_TRACE_BLIND;
}

void process_tree_take(struct process_tree *tree, const struct event *ev)
{
	if (ev->kind == EVENT_PROCESS_EXEC)
		take_exec(tree, ev);
	else if (ev->kind == EVENT_PROCESS_FORK)
		take_fork(tree, ev);
	else if (ev->kind == EVENT_PROCESS_EXIT)
		take_exit(tree, ev);
	else if (is_ours(ev))
		tree->is_lossy = true;
}

void process_tree_add(struct process_tree *tree, const struct event *ev)
{
	if (!is_ours(ev))
		return;
	reorder_push(tree->reorder, ev);
	while ((ev = reorder_pop(tree->reorder, false)))
		process_tree_take(tree, ev);
}

static void show(struct process_node *node)
{
	struct process_node *parent = node->parent;

	/* Parents come before children: a hidden one knows by now who shows in its place. */
	if (parent && parent->is_hidden)
		parent = parent->shown_parent;
	node->shown_parent = parent;
	node->shown_first = node->shown_last = node->shown_next = NULL;
	if (!parent || node->is_hidden)
		return;
	if (parent->shown_last)
		parent->shown_last->shown_next = node;
	else
		parent->shown_first = node;
	parent->shown_last = node;
}

size_t process_tree_settle(struct process_tree *tree)
{
	const struct event *ev;

	while ((ev = reorder_pop(tree->reorder, true)))
		process_tree_take(tree, ev);
	for (size_t i = 0; i < tree->n_nodes; i++)
		show(tree->nodes[i]);
	return tree->n_nodes;
}

struct process_node *process_tree_get(const struct process_tree *tree, size_t i)
{
	return tree->nodes[i];
}

struct process_node *process_tree_find(const struct process_tree *tree, int64_t pid)
{
	const struct process *process = find_process(tree, pid);

	return process ? process->node : NULL;
}

void process_tree_count(struct process_tree *tree, struct process_tree_counts *ret_counts)
{
	size_t n = process_tree_settle(tree);

	*ret_counts = (struct process_tree_counts){0};
	for (size_t i = 0; i < n; i++) {
		const struct process_node *node = tree->nodes[i];

		if (node->is_hidden)
			continue;
		ret_counts->started++;
		ret_counts->running += !node->has_ended;
		ret_counts->entered += node->entered;
		/* A process that was several programs failed once: as its last one. */
		ret_counts->failed += node->has_ended && (node->exit_code || node->is_signalled) &&
		                      !node->is_replaced;
	}
}
