/* SPDX-License-Identifier: Apache-2.0 */
#include "view/command_list.h"

#include <errno.h>
#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"
#include "view/agent_find.h"
#include "view/command_fold.h"
#include "view/command_work.h"
#include "view/intern.h"
#include "view/mount_event.h"
#include "view/network_place.h"
#include "view/reorder.h"
#include "view/saturate.h"

/* An exec as its two lines tell it. */
struct exec {
	struct command row; /* files and streams are filled in when settling */
	struct slice agent;
	bool has_start;
	char *streams[2];
	size_t stream_lens[2];
	bool is_clipped;
};

struct command_list {
	struct view_filter filter;
	struct mount_event mounts;
	struct reorder *reorder;
	struct intern *intern;
	struct process_tree *tree;
	struct command_work *work;
	struct map *execs; /* id to struct exec */
	struct command *commands;
	size_t n_commands, cap_commands;
	uint32_t *of_node; /* index + 1 into commands of what each program ran for */
	size_t n_nodes;
	bool sees_outputs, is_lossy;
	void (*on_refusal)(void *ctx, const struct event *ev, const struct process_node *node);
	void *ctx;
};

struct command_list *command_list_new(const struct view_filter *filter)
{
	const struct view_filter all = {.noise = true};
	struct command_list *list = new0(struct command_list);

	list->filter = *filter;
	list->reorder = reorder_new();
	list->intern = intern_new();
	list->tree = process_tree_new(&all);
	list->work = command_work_new();
	list->execs = map_new();
	return list;
}

static void clear(struct command_list *list)
{
	for (size_t i = 0; i < list->n_commands; i++) {
		str_done(&list->commands[i].streams[0]);
		str_done(&list->commands[i].streams[1]);
	}
	list->n_commands = 0;
}

void command_list_free(struct command_list *list)
{
	struct slice key;
	void *value;

	if (!list)
		return;
	clear(list);
	for (size_t i = 0; map_next(list->execs, &i, &key, &value);) {
		struct exec *exec = value;

		free(exec->streams[0]);
		free(exec->streams[1]);
		free(exec);
	}
	free(list->commands);
	free(list->of_node);
	map_free(list->execs);
	command_work_free(list->work);
	process_tree_free(list->tree);
	intern_free(list->intern);
	reorder_free(list->reorder);
	free(list);
}

struct process_tree *command_list_tree(struct command_list *list)
{
	return list->tree;
}

static struct exec *exec_at(struct command_list *list, const struct event *ev)
{
	void **slot = map_slot(list->execs, ev->exec);
	struct exec *exec = *slot ? *slot : (*slot = new0(struct exec));
	struct command *row = &exec->row;

	if (exec->has_start)
		return exec;
	exec->has_start = true;
	exec->agent = intern_text(list->intern, ev->agent);
	row->exec = intern_text(list->intern, ev->exec);
	row->argv = *intern_list(list->intern, &ev->argv);
	row->command = intern_text(list->intern, ev->command);
	row->cwd = intern_text(list->intern, ev->cwd);
	row->seq = ev->seq;
	row->started_ns = ev->guest_ns;
	row->started_ms = ev->wall_ms;
	return exec;
}

static void keep_stream(struct exec *exec, int i, struct slice text, int64_t bytes)
{
	free(exec->streams[i]);
	exec->streams[i] = mem_copy(text.p, text.len);
	exec->stream_lens[i] = text.len;
	exec->row.written[i] = bytes;
}

static void take_exec_end(struct command_list *list, const struct event *ev)
{
	struct exec *exec = exec_at(list, ev);
	struct command *row = &exec->row;

	row->has_ended = true;
	row->is_signalled = event_has(ev, signal) && ev->signal;
	row->signal = ev->signal;
	row->exit_code = ev->exit_code;
	row->timed_out = ev->timed_out;
	row->oom_killed = ev->oom_killed;
	row->interrupted = ev->interrupted;
	row->duration_ms = event_has(ev, duration_ms)
	                           ? ev->duration_ms
	                           : saturate_span_ms(row->started_ns, ev->guest_ns);
	row->output = ev->output_truncated ? COMMAND_OUTPUT_HEAD : COMMAND_OUTPUT_WHOLE;
	if (!event_has(ev, stdout_text) && !event_has(ev, stderr_text)) {
		row->output = COMMAND_OUTPUT_UNSEEN;
		return;
	}
	keep_stream(exec, 0, ev->stdout_text, ev->stdout_bytes);
	keep_stream(exec, 1, ev->stderr_text, ev->stderr_bytes);
}

static struct slice node_owner(const size_t *index)
{
	return (struct slice){.p = (const char *)index, .len = sizeof(*index)};
}

static void take_written(struct command_list *list, const struct event *ev)
{
	struct slice path = command_work_written(ev);
	const struct process_node *node;

	if (path.len == 0 || ev->internal)
		return;
	node = process_tree_find(list->tree, ev->pid);
	if (node)
		command_work_add(list->work, COMMAND_WORK_FILES, node_owner(&node->index), path);
	if (ev->exec.len)
		command_work_add(list->work, COMMAND_WORK_FILES, ev->exec, path);
}

static bool is_refused_host(const struct event *ev)
{
	return (ev->kind == EVENT_NET_REFUSED || ev->kind == EVENT_NET_DNS) && !ev->shadow;
}

static void add_host(struct command_list *list, const struct event *ev, enum command_work_list to)
{
	const struct process_node *node = process_tree_find(list->tree, ev->pid);
	struct slice host = network_place_host(ev);

	if (node)
		command_work_add(list->work, to, node_owner(&node->index), host);
	if (ev->exec.len)
		command_work_add(list->work, to, ev->exec, host);
}

/* Whether it tells of a host that something was sent to, or was to. Requests do not: their flow has told. */
static bool is_host(const struct event *ev)
{
	return ev->kind == EVENT_NET_CONNECT || ev->kind == EVENT_NET_UDP ||
	       ev->kind == EVENT_NET_REFUSED || (ev->kind == EVENT_NET_DNS && ev->refused);
}

static void take_host(struct command_list *list, const struct event *ev)
{
	if (network_place_host(ev).len == 0 || ev->internal)
		return;
	add_host(list, ev, COMMAND_WORK_HOSTS);
	if (is_refused_host(ev))
		add_host(list, ev, COMMAND_WORK_HOSTS_REFUSED);
}

static void take_output(struct command_list *list, const struct event *ev)
{
	const struct process_node *node = process_tree_find(list->tree, ev->pid);

	if (node && !ev->internal)
		command_work_add_output(list->work, node->index, ev);
}

static void take_started(struct command_list *list, const struct event *ev)
{
	for (size_t i = 0; i < ev->sources.n; i++)
		list->sees_outputs |= slice_is(ev->sources.items[i], "outputs");
}

void command_list_watch(struct command_list *list,
	void (*on_refusal)(void *ctx, const struct event *ev, const struct process_node *node),
	void *ctx)
{
	list->on_refusal = on_refusal;
	list->ctx = ctx;
}

static bool is_refusal(const struct event *ev)
{
	if (ev->kind == EVENT_SANDBOX_REFUSED || ev->kind == EVENT_NET_REFUSED ||
		ev->kind == EVENT_SECRET_MISUSE)
		return true;
	return ev->kind <= EVENT_DIR_CREATE && event_has(ev, result) &&
	       !event_has(ev, own_filter) && (ev->result == EACCES || ev->result == EPERM);
}

static void fold(struct command_list *list, const struct event *ev)
{
	process_tree_take(list->tree, ev);
	if (list->on_refusal && is_refusal(ev))
		list->on_refusal(list->ctx, ev, process_tree_find(list->tree, ev->pid));
	if (ev->kind == EVENT_EXEC_START)
		exec_at(list, ev);
	else if (ev->kind == EVENT_EXEC_END)
		take_exec_end(list, ev);
	else if (ev->kind == EVENT_PROCESS_OUTPUT)
		take_output(list, ev);
	else if (ev->kind == EVENT_TRACE_STARTED)
		take_started(list, ev);
	else if (ev->kind == EVENT_TRACE_DROPPED || ev->kind == EVENT_TRACE_BLIND)
		list->is_lossy = true;
	else if (is_host(ev))
		take_host(list, ev);
	else
		take_written(list, ev);
}

static bool is_ours(const struct command_list *list, const struct event *ev)
{
	if (ev->kind == EVENT_EXEC_START || ev->kind == EVENT_EXEC_END)
		return ev->exec.len > 0;
	return ev->kind <= EVENT_PROCESS_OUTPUT || ev->kind == EVENT_TRACE_STARTED ||
	       ev->kind == EVENT_TRACE_DROPPED || ev->kind == EVENT_TRACE_BLIND || is_host(ev) ||
	       command_work_written(ev).len > 0 || (list->on_refusal && is_refusal(ev));
}

void command_list_add(struct command_list *list, const struct event *ev)
{
	ev = mount_event_take(&list->mounts, ev);
	if (!ev || !is_ours(list, ev))
		return;
	reorder_push(list->reorder, ev);
	while ((ev = reorder_pop(list->reorder, false)))
		fold(list, ev);
}

static struct command *add_command(struct command_list *list)
{
	if (list->n_commands == list->cap_commands) {
		list->cap_commands = list->cap_commands ? list->cap_commands * 2 : 16;
		list->commands =
			mem_grow(list->commands, list->cap_commands, sizeof(*list->commands));
	}
	list->commands[list->n_commands] = (struct command){0};
	return &list->commands[list->n_commands++];
}

static void add_derived(struct command_list *list, const struct process_node *node)
{
	struct command *command = add_command(list);
	struct command_fold fold = {0};

	*command = (struct command){.exec = node->exec,
		.node = node,
		.derived = true,
		.cwd = node->cwd,
		.has_ended = node->has_ended,
		.is_signalled = node->is_signalled,
		.exit_code = node->exit_code,
		.signal = node->signal,
		.seq = node->seq,
		.started_ns = node->started_ns,
		.started_ms = node->started_ms};
	if (node->has_ended)
		command->duration_ms = saturate_span_ms(node->started_ns, node->ended_ns);
	command_fold_read(&fold, node->argv);
	command->argv = (struct event_list){
		.items = node->argv->items + fold.first, .n = node->argv->n - fold.first};
	if (fold.shape == COMMAND_STRING || fold.shape == COMMAND_PLUMBING)
		command->command = intern_text(list->intern, str_slice(&fold.command));
	command_fold_done(&fold);
}

/* Whether what was started then and there is asked for. */
static bool is_asked(const struct command_list *list, const struct command *command)
{
	struct event start = {.kind = EVENT_EXEC_START,
		.seq = command->seq,
		.guest_ns = command->started_ns,
		.wall_ms = command->started_ms,
		.exec = command->exec};

	return view_filter_takes(&list->filter, &start);
}

/* The derived commands of all execs. */
static void find_derived(struct command_list *list)
{
	struct agent_find_nodes nodes = {0};

	for (size_t i = 0; i < list->n_nodes; i++) {
		const struct process_node *node = process_tree_get(list->tree, i);
		struct exec *exec;
		size_t before = nodes.n;

		if (node->internal || (node->parent && slice_eq(node->parent->exec, node->exec)))
			continue;
		exec = node->exec.len ? map_find(list->execs, node->exec) : NULL;
		agent_find_commands(node, exec ? exec->agent : (struct slice){0}, &nodes);
		if (exec)
			exec->row.is_agent |= nodes.n > before;
	}
	for (size_t i = 0; i < nodes.n; i++)
		add_derived(list, nodes.items[i]);
	agent_find_done(&nodes);
}

static void add_execs(struct command_list *list)
{
	struct slice key;
	void *value;

	for (size_t i = 0; map_next(list->execs, &i, &key, &value);) {
		struct exec *exec = value;
		struct command *row = add_command(list);

		*row = exec->row;
		for (int s = 0; s < 2; s++)
			str_add(&row->streams[s], exec->streams[s], exec->stream_lens[s]);
	}
}

static int compare(const void *a, const void *b)
{
	const struct command *left = a, *right = b;

	if (left->started_ns != right->started_ns)
		return left->started_ns < right->started_ns ? -1 : 1;
	if (left->derived != right->derived)
		return left->derived ? 1 : -1;
	return left->seq < right->seq ? -1 : left->seq > right->seq;
}

static void drop_unasked(struct command_list *list)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n_commands; i++) {
		if (is_asked(list, &list->commands[i])) {
			list->commands[n++] = list->commands[i];
			continue;
		}
		str_done(&list->commands[i].streams[0]);
		str_done(&list->commands[i].streams[1]);
	}
	list->n_commands = n;
}

/* Says of every program which command it ran for: parents come before children. */
static void mark_nodes(struct command_list *list)
{
	list->of_node = mem_grow(list->of_node, list->n_nodes, sizeof(*list->of_node));
	memset(list->of_node, 0, list->n_nodes * sizeof(*list->of_node));
	for (size_t i = 0; i < list->n_commands; i++)
		if (list->commands[i].derived)
			list->of_node[list->commands[i].node->index] = (uint32_t)i + 1;
	for (size_t i = 0; i < list->n_nodes; i++) {
		const struct process_node *parent = process_tree_get(list->tree, i)->parent;

		if (!list->of_node[i] && parent)
			list->of_node[i] = list->of_node[parent->index];
	}
}

static int stream_of(const struct command *command, const struct command_chunk *chunk)
{
	const struct process_node *node = command->node;

	/* Without inodes on either side all that it and its programs wrote counts. */
	if (!chunk->file || (!node->stdout_file && !node->stderr_file))
		return chunk->stream;
	if (chunk->file == node->stdout_file && chunk->file == node->stderr_file)
		return chunk->stream;
	if (chunk->file == node->stdout_file)
		return 0;
	return chunk->file == node->stderr_file ? 1 : -1;
}

static void give_outputs(struct command_list *list)
{
	for (size_t i = 0; i < command_work_n_chunks(list->work); i++) {
		const struct command_chunk *chunk = command_work_chunk(list->work, i);
		uint32_t at = list->of_node[chunk->node];
		struct command *command = at ? &list->commands[at - 1] : NULL;
		int stream = command ? stream_of(command, chunk) : -1;
		size_t room;

		if (stream < 0)
			continue;
		room = COMMAND_OUTPUT_MAX - command->streams[stream].len;
		/* What comes behind bytes that were not copied would read as if it followed. */
		if ((int64_t)command->streams[stream].len == command->written[stream])
			str_add(&command->streams[stream], chunk->data.p,
				chunk->data.len < room ? chunk->data.len : room);
		command->written[stream] = saturate_add(command->written[stream], chunk->written);
	}
}

static void judge_output(const struct command_list *list, struct command *command)
{
	bool is_whole = command->has_ended && !list->is_lossy && !command_work_is_full(list->work);
	bool is_seen = list->sees_outputs;

	for (int s = 0; s < 2; s++) {
		is_whole = is_whole && (int64_t)command->streams[s].len == command->written[s];
		is_seen = is_seen || command->written[s] > 0;
	}
	if (!is_seen)
		command->output = COMMAND_OUTPUT_UNSEEN;
	else
		command->output = is_whole ? COMMAND_OUTPUT_WHOLE : COMMAND_OUTPUT_HEAD;
}

static void give_list(struct command_list *list, enum command_work_list which)
{
	for (size_t i = 0; i < list->n_nodes; i++) {
		const struct command_texts *texts =
			command_work_texts(list->work, which, node_owner(&i));
		size_t root;

		if (!texts || !list->of_node[i])
			continue;
		root = list->commands[list->of_node[i] - 1].node->index;
		for (size_t t = 0; root != i && t < texts->n; t++)
			command_work_add(list->work, which, node_owner(&root), texts->items[t]);
	}
}

/* Whether there were more. */
static bool link_list(const struct command_list *list, const struct command *command,
	enum command_work_list which, struct event_list *ret_list)
{
	const struct command_texts *texts = command_work_texts(list->work, which,
		command->derived ? node_owner(&command->node->index) : command->exec);

	if (!texts)
		return false;
	*ret_list = (struct event_list){.items = texts->items, .n = texts->n};
	return texts->is_cut;
}

/* Files and hosts of a derived command are those of all programs that ran for it. */
static void give_work(struct command_list *list)
{
	for (int which = 0; which < COMMAND_WORK_N_LISTS; which++)
		give_list(list, (enum command_work_list)which);
	for (size_t i = 0; i < list->n_commands; i++) {
		struct command *c = &list->commands[i];

		c->files_cut = link_list(list, c, COMMAND_WORK_FILES, &c->files);
		c->hosts_cut = link_list(list, c, COMMAND_WORK_HOSTS, &c->hosts);
		c->hosts_cut |= link_list(list, c, COMMAND_WORK_HOSTS_REFUSED, &c->hosts_refused);
	}
}

size_t command_list_settle(struct command_list *list)
{
	const struct event *ev;

	while ((ev = reorder_pop(list->reorder, true)))
		fold(list, ev);
	clear(list);
	list->n_nodes = process_tree_settle(list->tree);
	find_derived(list);
	add_execs(list);
	drop_unasked(list);
	if (list->n_commands > 1)
		qsort(list->commands, list->n_commands, sizeof(*list->commands), compare);
	mark_nodes(list);
	give_outputs(list);
	for (size_t i = 0; i < list->n_commands; i++)
		if (list->commands[i].derived)
			judge_output(list, &list->commands[i]);
	give_work(list);
	return list->n_commands;
}

const struct command *command_list_get(const struct command_list *list, size_t i)
{
	return &list->commands[i];
}

const struct command *command_list_find(
	const struct command_list *list, const struct process_node *node)
{
	uint32_t at = node->index < list->n_nodes ? list->of_node[node->index] : 0;

	return at ? &list->commands[at - 1] : NULL;
}

bool command_list_is_failed(const struct command *command)
{
	return command->has_ended &&
	       (command->is_signalled || command->exit_code != 0 || command->timed_out);
}
