/* SPDX-License-Identifier: Apache-2.0 */
/* cloche doctor: what this host can do, what it cannot, and what to do about it. The supervisor program
 * knows: it is asked, and answers with a JSON object a line. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/verb.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/program.h"
#include "util/scoped.h"

#define ANSWER_MAX (1 << 20)
#define NAME_WIDTH 26

static _Noreturn void exec_probe(
	const char *program, const char *state_dir, const char *cwd, int out)
{
	char *args[] = {(char *)program, (char *)"probe", (char *)state_dir, (char *)cwd, NULL};

	if (dup2(out, 1) >= 0)
		execv(program, args);
	_exit(CLI_FAILURE);
}

static int probe(const struct cli *cli, struct str *ret_answer, struct err *err)
{
	scoped_str struct str program = {0};
	scoped_mem char *cwd = getcwd(NULL, 0);
	scoped_fd int in = -1, out = -1;
	int pipe[2], status = 0, r = program_find("cloche-supervisor", &program, err);
	pid_t pid;

	if (r < 0)
		return r;
	if (pipe2(pipe, O_CLOEXEC) < 0)
		return err_set(err, -errno, "make a pipe: %m");
	in = pipe[0];
	out = pipe[1];
	pid = fork();
	if (pid < 0)
		return err_set(err, -errno, "start '%s': %m", program.p);
	if (pid == 0)
		exec_probe(program.p, cli->state_dir, cwd ? cwd : "/", out);
	close(take_fd(&out));
	r = fdio_read_all(in, ANSWER_MAX, ret_answer);
	if (waitpid(pid, &status, 0) < 0 || status != 0)
		return err_set(err, -EIO, "'%s probe' failed", program.p);
	return r < 0 ? err_set(err, r, "read what '%s probe' says: %m", program.p) : 0;
}

static void add_words(struct str *out, const json_t *item, const struct view_style *style)
{
	const char *what = json_string_value(json_object_get(item, "what"));
	const char *detail = json_string_value(json_object_get(item, "detail"));
	bool ok = json_is_true(json_object_get(item, "ok"));
	bool required = json_is_true(json_object_get(item, "required"));
	scoped_str struct str name = {0};

	log_add_escaped(&name, slice_of(what ? what : "?"));
	view_text_add_color(out, style,
		ok         ? VIEW_GREEN
		: required ? VIEW_RED
			   : VIEW_YELLOW,
		slice_of(ok         ? "on      "
			 : required ? "MISSING "
				    : "off     "));
	str_puts(out, name.p);
	for (size_t w = view_text_width(str_slice(&name)); w < NAME_WIDTH; w++)
		str_putc(out, ' ');
	str_puts(out, "  ");
	log_add_escaped(out, slice_of(detail ? detail : ""));
	str_putc(out, '\n');
}

/* Whether all that is required is there. */
static bool read_answer(const struct cli *cli, char *answer, struct str *out, size_t *ret_n)
{
	struct view_style style = cli_style(cli);
	char *rest = answer, *line;
	bool good = true;
	size_t n = 0;

	while ((line = strsep(&rest, "\n"))) {
		json_t *item = *line ? json_loads(line, 0, NULL) : NULL;

		if (!item)
			continue;
		if (json_is_true(json_object_get(item, "required")) &&
			!json_is_true(json_object_get(item, "ok")))
			good = false;
		if (cli->json)
			str_printf(out, "%s%s", n ? ",\n" : "[", line);
		else if (cli->jsonl)
			str_printf(out, "%s\n", line);
		else
			add_words(out, item, &style);
		n++;
		json_decref(item);
	}
	if (cli->json)
		str_puts(out, n ? "]\n" : "[]\n");
	*ret_n = n;
	return good;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	scoped_str struct str answer = {0}, out = {0};
	size_t n = 0;
	bool good;
	int r = probe(cli, &answer, err);

	if (r < 0)
		return r;
	good = answer.p && read_answer(cli, answer.p, &out, &n);
	if (n == 0)
		return err_set(err, -EIO, "the probe said nothing");
	if (!cli->json && !cli->jsonl && !cli->quiet)
		str_puts(&out, good ? "Cloche can run here.\n"
				    : "Cloche cannot run here until what is MISSING is there.\n");
	r = cli_print(&out, err);
	return r < 0 ? r : good ? 0 : CLI_NO;
}

const struct verb verb_doctor = {
	.name = "doctor",
	.class = VERB_CARE,
	.usage = "",
	.help = "check what this host can do, and say what to do where it cannot",
	.text = "Exit status 0 where all that is required is there, else 1.",
	.run = run,
};
