/* SPDX-License-Identifier: Apache-2.0 */
/* Walks without recursion: how deep the tree is was up to the sandbox. */
#include "util/clock.h"
#include "util/jsonw.h"
#include "view/process_tree.h"

static void write_time(struct jsonw *j, const char *key, bool has, int64_t wall_ms)
{
	char text[CLOCK_TEXT_LEN];

	if (!has) {
		jsonw_knull(j, key);
		return;
	}
	clock_format(wall_ms, text);
	jsonw_ktext(j, key, text);
}

static void write_number(struct jsonw *j, const char *key, bool has, int64_t v)
{
	if (has)
		jsonw_kint(j, key, v);
	else
		jsonw_knull(j, key);
}

static void write_text(struct jsonw *j, const char *key, struct slice text)
{
	if (text.len)
		jsonw_kslice(j, key, text);
	else
		jsonw_knull(j, key);
}

static void enter(struct jsonw *j, const struct process_node *node)
{
	jsonw_object(j);
	write_number(j, "pid", node->pid != 0, node->pid);
	write_text(j, "path", node->path);
	jsonw_klist(j, "argv", node->argv->items, node->argv->n);
	write_number(j, "exit_code", node->has_ended && !node->is_signalled, node->exit_code);
	write_number(j, "signal", node->is_signalled, node->signal);
	write_time(j, "started_at", true, node->started_ms);
	jsonw_kint(j, "started_ns", node->started_ns);
	write_time(j, "ended_at", node->has_ended, node->ended_ms);
	write_text(j, "cwd", node->cwd);
	write_number(j, "uid", node->has_uid, node->uid);
	write_text(j, "exec", node->exec);
	jsonw_kbool(j, "entered", node->entered);
	if (node->internal)
		jsonw_kbool(j, "internal", true);
	if (node->argv_truncated)
		jsonw_kbool(j, "argv_truncated", true);
	if (node->path_unresolved)
		jsonw_kbool(j, "path_unresolved", true);
	if (node->moved_up)
		jsonw_kbool(j, "moved_up", true);
	jsonw_key(j, "children");
	jsonw_array(j);
}

static void leave(struct jsonw *j)
{
	jsonw_array_end(j);
	jsonw_object_end(j);
}

static void write_root(struct jsonw *j, const struct process_node *root)
{
	const struct process_node *node = root;

	enter(j, node);
	for (;;) {
		if (node->shown_first) {
			node = node->shown_first;
			enter(j, node);
			continue;
		}
		leave(j);
		while (node != root && !node->shown_next) {
			node = node->shown_parent;
			leave(j);
		}
		if (node == root)
			return;
		node = node->shown_next;
		enter(j, node);
	}
}

void process_tree_json(struct process_tree *tree, struct str *out)
{
	size_t n = process_tree_settle(tree);
	struct jsonw j = jsonw_to(out);

	jsonw_array(&j);
	for (size_t i = 0; i < n; i++) {
		const struct process_node *node = process_tree_get(tree, i);

		if (!node->is_hidden && !node->shown_parent)
			write_root(&j, node);
	}
	jsonw_array_end(&j);
}
