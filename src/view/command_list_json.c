/* SPDX-License-Identifier: Apache-2.0 */
#include "util/clock.h"
#include "util/jsonw.h"
#include "view/command_list.h"

static void write_number(struct jsonw *j, const char *key, bool has, int64_t v)
{
	if (has)
		jsonw_kint(j, key, v);
	else
		jsonw_knull(j, key);
}

static void write_what(struct jsonw *j, const struct command *command)
{
	if (command->command.len)
		jsonw_kslice(j, "command", command->command);
	else
		jsonw_klist(j, "argv", command->argv.items, command->argv.n);
	if (command->cwd.len)
		jsonw_kslice(j, "cwd", command->cwd);
	else
		jsonw_knull(j, "cwd");
}

static void write_end(struct jsonw *j, const struct command *command)
{
	bool has_code = command->has_ended && !command->is_signalled && !command->interrupted;
	char text[CLOCK_TEXT_LEN];

	write_number(j, "exit_code", has_code, command->exit_code);
	write_number(j, "signal", command->is_signalled, command->signal);
	if (!command->derived) {
		jsonw_kbool(j, "timed_out", command->timed_out);
		jsonw_kbool(j, "oom_killed", command->oom_killed);
	}
	clock_format(command->started_ms, text);
	jsonw_ktext(j, "started_at", text);
	write_number(j, "duration_ms", command->has_ended, command->duration_ms);
}

static void write_streams(struct jsonw *j, const struct command *command)
{
	static const char *const texts[] = {"stdout", "stderr"}, *const counts[] = {"stdout_bytes",
									 "stderr_bytes"};
	static const char *const words[] = {
		[COMMAND_OUTPUT_UNSEEN] = "unseen",
		[COMMAND_OUTPUT_HEAD] = "head",
		[COMMAND_OUTPUT_WHOLE] = "whole",
	};
	bool is_seen = command->output != COMMAND_OUTPUT_UNSEEN;

	for (int i = 0; i < 2; i++) {
		if (is_seen)
			jsonw_kslice(j, texts[i], str_slice(&command->streams[i]));
		else
			jsonw_knull(j, texts[i]);
		write_number(j, counts[i], is_seen, command->written[i]);
	}
	jsonw_ktext(j, "output", words[command->output]);
}

static void write_command(struct jsonw *j, const struct command *command)
{
	jsonw_object(j);
	jsonw_kslice(j, "exec", command->exec);
	jsonw_kbool(j, "derived", command->derived);
	if (command->derived) {
		jsonw_kslice(j, "parent", command->exec);
		jsonw_kint(j, "pid", command->node->pid);
	} else {
		jsonw_knull(j, "parent");
		jsonw_kbool(j, "agent", command->is_agent);
	}
	write_what(j, command);
	write_end(j, command);
	write_streams(j, command);
	jsonw_klist(j, "files_written", command->files.items, command->files.n);
	if (command->files_cut)
		jsonw_kbool(j, "files_cut", true);
	jsonw_klist(j, "hosts", command->hosts.items, command->hosts.n);
	jsonw_klist(j, "hosts_refused", command->hosts_refused.items, command->hosts_refused.n);
	if (command->hosts_cut)
		jsonw_kbool(j, "hosts_cut", true);
	jsonw_object_end(j);
}

void command_list_json(struct command_list *list, struct str *out)
{
	size_t n = command_list_settle(list);
	struct jsonw j = jsonw_to(out);

	jsonw_array(&j);
	for (size_t i = 0; i < n; i++)
		write_command(&j, command_list_get(list, i));
	jsonw_array_end(&j);
}
