/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/office_verb.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/program.h"
#include "util/scoped.h"

#define ARGS_MAX 24
#define TEXT_MAX (64u << 10) /* of each stream that goes into the answer */
#define META_MAX (4u << 20)

/* What may be asked for: a verb, the options it may have, how many words behind the id. */
static const struct allowed {
	const char *verb;
	const char *const options[6];
	size_t n_words;
	bool takes_hidden;        /* values of secrets, through a descriptor */
	const char *for_the_dead; /* an option for sandboxes that have ended */
} table[] = {
	{"fork", {NULL}, 0, .takes_hidden = true},
	{"show", {"--json", "--markdown", "--color=never", "--color=always"}, 0},
	{"resume", {NULL}, 0, .takes_hidden = true},
	{"rm", {"--record", "--changes", "--aged-out"}, 0, .for_the_dead = "--record"},
	{"discard", {"--json", NULL}, 8},
	{"changes", {"--json", "--jsonl"}, 0},
	{"diff", {"--color=never", "--json", NULL}, 8},
	{"manifest", {"--jsonl", "--all", NULL}, 8},
};

static bool has_option(const struct allowed *row, const char *option)
{
	for (size_t i = 0; row->options[i]; i++)
		if (strcmp(row->options[i], option) == 0)
			return true;
	return false;
}

/* Descriptors of what is run, from 3 on. */
enum file {
	FILE_SPEC,
	FILE_WITHIN,
	FILE_HIDDEN,
	FILES_MAX,
};
#define SPEC_PATH   "/proc/self/fd/3"
#define WITHIN_PATH "/proc/self/fd/4"
#define HIDDEN_PATH "/proc/self/fd/5"
#define OURS_FROM   16 /* where ours lie: not where those go */

struct run {
	const char *args[ARGS_MAX + 1]; /* behind the global ones; ends with NULL */
	size_t n;
	const char *actor;
	int files[FILES_MAX]; /* -1: none */
	int stdout_fd, reply_fd;
};

static int add_options(
	const struct allowed *row, const json_t *options, struct run *run, struct err *err)
{
	for (size_t i = 0; i < json_array_size(options); i++) {
		const char *option = json_string_value(json_array_get(options, i));

		if (!option || !has_option(row, option) || run->n + 1 >= ARGS_MAX)
			return err_set(err, -EINVAL, "%s has no such option", row->verb);
		run->args[run->n++] = option;
	}
	return 0;
}

/* What is kept of one that lives, or rests, is nobody's to take: its end comes first, and stands in the record. */
static int check_life(const struct office *office, const struct allowed *row, const char *id,
	const struct run *run, struct err *err)
{
	scoped_mem char *dir = mem_printf("%s/sandboxes/%s", office->state_dir, id);
	bool is_asked = false;

	for (size_t i = 0; row->for_the_dead && i < run->n; i++)
		is_asked |= strcmp(run->args[i], row->for_the_dead) == 0;
	if (is_asked && access(dir, F_OK) == 0)
		return err_set(err, -EBUSY, "sandbox %s has not ended: its record stays", id);
	return 0;
}

static int add_words(
	const struct allowed *row, const json_t *words, struct run *run, struct err *err)
{
	if (json_array_size(words) > row->n_words)
		return err_set(
			err, -EINVAL, "%s takes no more than %zu paths", row->verb, row->n_words);
	for (size_t i = 0; i < json_array_size(words); i++) {
		const char *word = json_string_value(json_array_get(words, i));

		if (!word || run->n + 1 >= ARGS_MAX)
			return err_set(err, -EINVAL, "a path is a text");
		run->args[run->n++] = word;
	}
	return 0;
}

static int run_cloche(const struct office *office, const struct run *run, struct err *err);

/* value NULL: an empty object. */
static int memory_file(const json_t *value, struct err *err)
{
	scoped_fd int low = memfd_create("office", MFD_CLOEXEC);
	scoped_fd int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, OURS_FROM);
	scoped_mem char *text = value ? json_dumps(value, JSON_COMPACT) : mem_dup("{}");
	int r = fd < 0 ? -errno : !text ? -EINVAL : fdio_write_all(fd, text, strlen(text));

	if (text)
		explicit_bzero(text, strlen(text));
	if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, r < 0 ? r : -errno, "hand over what was asked for: %m");
	return take_fd(&fd);
}

int office_verb(
	const struct office *office, const struct office_verb_request *request, struct err *err)
{
	const char *verb = json_string_value(json_object_get(request->body, "verb"));
	const struct allowed *row = NULL;
	scoped_fd int hidden_fd = -1;
	struct run run = {.actor = json_string_value(json_object_get(request->body, "actor")),
		.files = {-1, -1, -1},
		.stdout_fd = request->stdout_fd,
		.reply_fd = request->reply_fd};
	int r;

	for (size_t i = 0; verb && i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].verb, verb) == 0)
			row = &table[i];
	if (!row)
		return err_set(err, -EINVAL, "the launcher runs no such verb");
	run.args[run.n++] = row->verb;
	r = add_options(row, json_object_get(request->body, "options"), &run, err);
	if (r == 0)
		r = check_life(office, row, request->id, &run, err);
	if (r == 0 && row->takes_hidden) {
		run.args[run.n++] = "--hidden";
		run.args[run.n++] = HIDDEN_PATH;
		hidden_fd = memory_file(json_object_get(request->body, "hidden"), err);
		run.files[FILE_HIDDEN] = hidden_fd;
		r = hidden_fd < 0 ? hidden_fd : 0;
	}
	if (r < 0)
		return r;
	run.args[run.n++] = "--"; /* what follows are no options, whatever it begins with */
	run.args[run.n++] = request->id;
	r = add_words(row, json_object_get(request->body, "words"), &run, err);
	return r < 0 ? r : run_cloche(office, &run, err);
}

/* What the configuration lets an account name; NULL: nothing. */
static const json_t *within_of(const struct office *office, const char *account)
{
	return json_object_get(json_object_get(office->config, "accounts"), account);
}

int office_create(const struct office *office, const json_t *body, int reply_fd, struct err *err)
{
	const char *account = json_string_value(json_object_get(body, "account"));
	const json_t *spec = json_object_get(body, "spec");
	scoped_fd int spec_fd = -1, within_fd = -1, hidden_fd = -1;
	int r = 0;

	if (!account || !json_is_object(spec))
		r = err_set(err, -EINVAL, "a sandbox needs an account and a spec");
	if (r == 0)
		r = spec_fd = memory_file(spec, err);
	if (r >= 0)
		r = within_fd = memory_file(within_of(office, account), err);
	if (r >= 0)
		r = hidden_fd = memory_file(json_object_get(body, "hidden"), err);
	if (r < 0)
		return r;
	return run_cloche(office,
		&(struct run){.args = {"create", "--account", account, "--within", WITHIN_PATH,
				      "--hidden", HIDDEN_PATH, "--spec", SPEC_PATH},
			.actor = json_string_value(json_object_get(body, "actor")),
			.files = {spec_fd, within_fd, hidden_fd},
			.stdout_fd = -1,
			.reply_fd = reply_fd},
		err);
}

/* Whose a sandbox is, as it was made. The caller's. */
static int read_account(const struct office *office, const char *id, char **ret, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/records/%s/meta.json", office->state_dir, id);
	scoped_str struct str text = {0};
	json_t *meta;
	const char *account;
	int r = fdio_read_file(AT_FDCWD, path, META_MAX, &text);

	if (r < 0)
		return err_set(err, r, "read what sandbox %s is: %m", id);
	meta = json_loadb(text.p, text.len, 0, NULL);
	account = json_string_value(json_object_get(json_object_get(meta, "spec"), "account"));
	*ret = account ? mem_dup(account) : NULL;
	json_decref(meta);
	return *ret ? 0 : err_set(err, -ENOENT, "sandbox %s belongs to no account", id);
}

int office_net_rules(const struct office *office, const char *id, const json_t *body, int reply_fd,
	struct err *err)
{
	const json_t *rules = json_object_get(body, "rules");
	scoped_mem char *account = NULL;
	scoped_fd int rules_fd = -1, within_fd = -1;
	int r = json_is_object(rules) ? read_account(office, id, &account, err)
	                              : err_set(err, -EINVAL, "rules are an object");

	if (r == 0)
		r = rules_fd = memory_file(rules, err);
	if (r >= 0)
		r = within_fd = memory_file(within_of(office, account), err);
	if (r < 0)
		return r;
	return run_cloche(office,
		&(struct run){.args = {"net-rules", "--json", "--within", WITHIN_PATH, "--rules",
				      SPEC_PATH, "--", id},
			.actor = json_string_value(json_object_get(body, "actor")),
			.files = {rules_fd, within_fd, -1},
			.stdout_fd = -1,
			.reply_fd = reply_fd},
		err);
}

int office_net_proxy(const struct office *office, const char *id, const json_t *body, int reply_fd,
	struct err *err)
{
	const char *url = json_string_value(json_object_get(body, "url"));
	scoped_mem char *account = NULL;
	scoped_fd int within_fd = -1, hidden_fd = -1;
	struct run run = {.args = {"net-rules", "--json", "--within", WITHIN_PATH,
				  "--upstream-proxy", url ? url : "none"},
		.n = 6,
		.actor = json_string_value(json_object_get(body, "actor")),
		.stdout_fd = -1,
		.reply_fd = reply_fd};
	int r = read_account(office, id, &account, err);

	if (r == 0)
		r = within_fd = memory_file(within_of(office, account), err);
	if (r >= 0 && url) {
		run.args[run.n++] = "--hidden";
		run.args[run.n++] = HIDDEN_PATH;
		r = hidden_fd = memory_file(json_object_get(body, "hidden"), err);
	}
	run.files[FILE_SPEC] = -1;
	run.files[FILE_WITHIN] = within_fd;
	run.files[FILE_HIDDEN] = hidden_fd;
	run.args[run.n++] = "--";
	run.args[run.n++] = id;
	return r < 0 ? r : run_cloche(office, &run, err);
}

struct streams {
	int out[2], err[2]; /* pipes; -1 where stdout goes elsewhere */
};

static _Noreturn void execute(const struct office *office, const struct run *run,
	const char *program, const struct streams *s)
{
	const char *argv[ARGS_MAX + 8] = {"cloche", "--state", office->state_dir};
	scoped_mem char *gid = mem_printf("%u", (unsigned)office->readers);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	size_t n = 3;

	if (run->actor) {
		argv[n++] = "--actor";
		argv[n++] = run->actor;
	}
	for (size_t i = 0; run->args[i]; i++)
		argv[n++] = run->args[i];
	(void)dup2(null, 0);
	(void)dup2(run->stdout_fd < 0 ? s->out[1] : run->stdout_fd, 1);
	(void)dup2(s->err[1], 2);
	for (int i = 0; i < FILES_MAX; i++) /* all of ours lie above: see main.c */
		if (run->files[i] >= 0)
			(void)dup2(run->files[i], 3 + i);
	(void)close_range(3 + FILES_MAX, ~0U, 0);
	/* Records are root's, and read by the control plane's group. */
	(void)setenv("SUDO_UID", "0", 1);
	(void)setenv("SUDO_GID", gid, 1);
	(void)setenv("CLOCHE_RUN", office->run_dir, 1);
	(void)chdir("/");
	(void)execv(program, (char *const *)argv);
	_exit(127);
}

static void take_bytes(int fd, struct str *out, bool *ret_is_open)
{
	char buf[4096];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n < 0 && errno == EINTR)
		return;
	*ret_is_open = n > 0;
	if (n > 0 && out->len + (size_t)n <= TEXT_MAX)
		str_add(out, buf, (size_t)n);
}

static void gather(const struct streams *s, struct str *out, struct str *err)
{
	bool is_out_open = s->out[0] >= 0, is_err_open = true;

	while (is_out_open || is_err_open) {
		struct pollfd fds[] = {{.fd = is_out_open ? s->out[0] : -1, .events = POLLIN},
			{.fd = is_err_open ? s->err[0] : -1, .events = POLLIN}};

		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents)
			take_bytes(s->out[0], out, &is_out_open);
		if (fds[1].revents)
			take_bytes(s->err[0], err, &is_err_open);
	}
}

static void reply(int reply_fd, int status, const struct str *out, const struct str *err)
{
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);

	jsonw_object(&j);
	jsonw_kbool(&j, "ok", true);
	jsonw_kint(&j, "status", status);
	jsonw_kslice(&j, "output", str_slice(out));
	jsonw_kslice(&j, "error", str_slice(err));
	jsonw_object_end(&j);
	(void)fdio_send(reply_fd, text.p, text.len, NULL, 0); /* who left needs no answer */
}

static int open_streams(bool wants_out, struct streams *s, struct err *err)
{
	if ((wants_out && pipe2(s->out, O_CLOEXEC) < 0) || pipe2(s->err, O_CLOEXEC) < 0)
		return err_set(err, -errno, "make pipes: %m");
	return 0;
}

/* The keeper that a new sandbox leaves behind closes our pipes, so their end is the verb's. */
static int run_cloche(const struct office *office, const struct run *run, struct err *err)
{
	scoped_str struct str program = {0}, out = {0}, error = {0};
	struct streams s = {.out = {-1, -1}};
	int status = 0, r = program_find("cloche", &program, err);
	pid_t pid;

	if (r == 0)
		r = open_streams(run->stdout_fd < 0, &s, err);
	if (r < 0)
		return r;
	pid = fork();
	if (pid < 0)
		return err_set(err, -errno, "start a process: %m");
	if (pid == 0)
		execute(office, run, program.p, &s);
	close(s.err[1]);
	scoped_close(&s.out[1]);
	gather(&s, &out, &error);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	reply(run->reply_fd, WIFEXITED(status) ? WEXITSTATUS(status) : 125, &out, &error);
	return 0;
}
