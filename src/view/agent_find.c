/* SPDX-License-Identifier: Apache-2.0 */
#include "view/agent_find.h"

#include <stdlib.h>

#include "util/mem.h"
#include "view/command_fold.h"
#include "view/program_class.h"

void agent_find_done(struct agent_find_nodes *nodes)
{
	free(nodes->items);
	*nodes = (struct agent_find_nodes){0};
}

static void add(struct agent_find_nodes *nodes, const struct process_node *node)
{
	if (nodes->n == nodes->cap) {
		nodes->cap = nodes->cap ? nodes->cap * 2 : 16;
		nodes->items = mem_grow(nodes->items, nodes->cap, sizeof(struct process_node *));
	}
	nodes->items[nodes->n++] = node;
}

static struct slice name_of(const struct process_node *node)
{
	return program_class_name(node->argv, node->path);
}

static bool is_plain_shell(const struct process_node *node)
{
	struct slice file = program_class_base(node->path);

	if (file.len == 0 || slice_is(file, "busybox"))
		file = node->argv->n ? program_class_base(node->argv->items[0]) : file;
	return program_class_is_shell(file);
}

static bool is_wrapper(const struct process_node *node)
{
	return program_class_unwrap(node->argv, 0) != 0;
}

/* The folder of the package that a script belongs to: up to the part behind the last node_modules. */
static struct slice package_of(struct slice script)
{
	static const char mark[] = "/node_modules/";
	const char *at = NULL;
	size_t skip, parts;

	for (const char *p = script.p;
		p && script.len >= sizeof(mark) - 1 &&
		(p = memmem(p, (size_t)(script.p + script.len - p), mark, sizeof(mark) - 1));
		p++)
		at = p;
	if (!at)
		return (struct slice){0};
	skip = (size_t)(at - script.p) + sizeof(mark) - 1;
	parts = skip < script.len && script.p[skip] == '@' ? 2 : 1;
	for (; skip < script.len; skip++)
		if (script.p[skip] == '/' && --parts == 0)
			break;
	return (struct slice){.p = script.p, .len = skip};
}

/* Python's own workers and their keepers. */
static bool is_multiprocessing(const struct process_node *node)
{
	for (size_t i = 1; i + 1 < node->argv->n; i++)
		if (slice_is(node->argv->items[i], "-c") &&
			slice_starts(node->argv->items[i + 1], "from multiprocessing."))
			return true;
	return false;
}

static enum command_shape shape_of(const struct process_node *node)
{
	struct command_fold fold = {0};
	enum command_shape shape;

	command_fold_read(&fold, node->argv);
	shape = fold.shape;
	command_fold_done(&fold);
	return shape;
}

/* The same program started again: an agent's helper, or an interpreter with the same script or package. */
static bool is_same_program(const struct process_node *agent, const struct process_node *node)
{
	struct slice script = program_class_script(agent->argv, agent->path);
	struct slice other = program_class_script(node->argv, node->path);
	struct slice package = package_of(script);

	if (!slice_eq(agent->path, node->path) || is_plain_shell(node))
		return false;
	if (!program_class_is_interpreter(agent->path))
		return true;
	if (package.len && slice_eq(package, package_of(other)))
		return true;
	return (script.len && slice_eq(script, other)) || is_multiprocessing(node);
}

/* What a wrapper replaced itself by. */
static const struct process_node *behind_wrapper(const struct process_node *node)
{
	while (is_wrapper(node) && node->first_child && node->first_child->before == node)
		node = node->first_child;
	return node;
}

/* Whether node is the agent again and no command of it. */
static bool is_agent_again(
	const struct process_node *agent, const struct process_node *node, enum command_shape shape)
{
	if (node->before == agent)
		return shape != COMMAND_STRING;
	node = behind_wrapper(node);
	if (is_same_program(agent, node))
		return true;
	return program_class_is_agent(name_of(agent)) && slice_eq(name_of(agent), name_of(node));
}

/* Adds the commands right under agent. Plumbing comes before the first of them: what looks like it later may be
 * a command that hides. Returns whether a shell was given one as a string. */
static bool gather(const struct process_node *agent, struct agent_find_nodes *commands)
{
	struct agent_find_nodes waiting = {0}; /* programs whose children are commands */
	bool has_string = false;

	add(&waiting, agent);
	while (waiting.n > 0) {
		const struct process_node *parent = waiting.items[--waiting.n];

		for (const struct process_node *node = parent->first_child; node;
			node = node->next) {
			enum command_shape shape = shape_of(node);

			if (node->internal || (shape == COMMAND_PLUMBING && !has_string))
				continue;
			if (shape == COMMAND_PLUMBING)
				shape = COMMAND_STRING;
			has_string |= shape == COMMAND_STRING;
			if (is_agent_again(parent, node, shape) ||
				is_agent_again(agent, node, shape) ||
				(shape == COMMAND_SESSION && node->first_child))
				add(&waiting, node);
			else
				add(commands, node);
		}
	}
	agent_find_done(&waiting);
	return has_string;
}

static const struct process_node *next_in(
	const struct process_node *root, const struct process_node *node, bool inside)
{
	if (inside && node->first_child)
		return node->first_child;
	for (; node != root; node = node->parent)
		if (node->next)
			return node->next;
	return NULL;
}

static bool has_name(const struct process_node *node, struct slice agent)
{
	struct slice name = name_of(node);

	return program_class_is_agent(name) || (agent.len && slice_eq(name, agent));
}

/* Rule 1. Returns whether there was one. */
static bool find_by_name(
	const struct process_node *root, struct slice agent, struct agent_find_nodes *commands)
{
	bool found = false;

	for (const struct process_node *node = root; node;) {
		bool is_agent = !node->internal && has_name(node, agent);

		if (is_agent)
			gather(node, commands);
		found |= is_agent;
		node = next_in(root, node, !is_agent);
	}
	return found;
}

static bool can_be_agent(const struct process_node *node)
{
	return !node->internal && !is_plain_shell(node) && !program_class_is_tool(name_of(node));
}

/* Rule 2: goes down through shells and wrappers only. */
static void find_by_work(const struct process_node *root, struct agent_find_nodes *commands)
{
	struct agent_find_nodes found = {0}, other = {0};
	size_t n_agents = 0;

	for (const struct process_node *node = root; node;) {
		bool is_way = is_plain_shell(node) || is_wrapper(node);

		if (!is_way && can_be_agent(node)) {
			other.n = 0;
			if (gather(node, &other) || other.n > 1) {
				struct agent_find_nodes kept = found;

				found = other;
				other = kept;
				n_agents++;
			}
		}
		node = next_in(root, node, is_way);
	}
	for (size_t i = 0; n_agents == 1 && i < found.n; i++)
		add(commands, found.items[i]);
	agent_find_done(&found);
	agent_find_done(&other);
}

/* A shell that runs a script: `sh agent.sh`, or a script's own first line. */
static bool is_script(const struct process_node *node)
{
	return !node->internal && is_plain_shell(node) && node->argv->n > 1 &&
	       node->argv->items[1].len > 0 && node->argv->items[1].p[0] != '-';
}

static size_t n_strings(const struct agent_find_nodes *nodes)
{
	size_t n = 0;

	for (size_t i = 0; i < nodes->n; i++)
		n += shape_of(nodes->items[i]) == COMMAND_STRING;
	return n;
}

/* Rule 3: a script that hands strings to shells, again and again, is an agent written in shell. */
static void find_script(const struct process_node *root, struct agent_find_nodes *commands)
{
	for (const struct process_node *node = root; node;) {
		bool is_way = is_plain_shell(node) || is_wrapper(node);
		struct agent_find_nodes found = {0};

		if (is_script(node))
			gather(node, &found);
		if (n_strings(&found) > 1) {
			*commands = found;
			return;
		}
		agent_find_done(&found);
		node = next_in(root, node, is_way);
	}
}

void agent_find_commands(
	const struct process_node *root, struct slice agent, struct agent_find_nodes *ret_nodes)
{
	if (find_by_name(root, agent, ret_nodes))
		return;
	find_by_work(root, ret_nodes);
	if (ret_nodes->n == 0)
		find_script(root, ret_nodes);
}
