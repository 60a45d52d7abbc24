/* SPDX-License-Identifier: Apache-2.0 */
/* a worker asks the launcher -> lines are read -> "began" -> "ended" or "failed"; or its end without a word: it was killed */
#include "server/file_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/file_ring.h"
#include "server/launcher_ask.h"
#include "server/workers.h"
#include "util/mem.h"

#define READ_AT_ONCE (64u << 10)
#define START_S      60 /* for a large tree to be read */

struct file_source {
	struct work work;
	struct server *server;
	struct file_source_handler handler;
	char sandbox[ID_SIZE];
	struct str path;
	bool is_patient;
	int fd, r; /* what the worker came back with */
	struct err err;
	struct event *io, *late;
	struct file_lines lines;
	bool is_working, is_reading, is_freed; /* freed once neither is */
};

void file_source_free(struct file_source *source)
{
	if (!source)
		return;
	source->is_freed = true;
	if (source->io)
		event_free(take(&source->io));
	if (source->late)
		event_free(take(&source->late));
	if (source->is_working)
		return;
	scoped_close(&source->fd);
	source->fd = -1;
	if (source->is_reading)
		return;
	str_done(&source->path);
	str_done(&source->lines.line);
	free(source);
}

/* ---- its lines ---- */

bool file_source_line_is(struct slice json, const char *change)
{
	scoped_mem char *member = mem_printf("\"change\":\"%s\"", change);
	const char *at = memmem(json.p, json.len, "\"change\":", 9); /* the first is ours */

	return at && slice_starts((struct slice){.p = at, .len = json.len - (size_t)(at - json.p)},
			     member);
}

static const struct {
	const char *name;
	int error;
} errors[] = {
	{"ENOENT", ENOENT},
	{"ENOTDIR", ENOENT},
	{"ESRCH", ENOTCONN},
	{"EXDEV", EXDEV},
	{"ELOOP", EINVAL},
	{"ENAMETOOLONG", EINVAL},
	{"EINVAL", EINVAL},
	{"EACCES", EACCES},
	{"EMFILE", EAGAIN},
	{"ENOSPC", EAGAIN},
};

static void take_failure(struct file_source *source, struct slice line)
{
	json_t *root = json_loadb(line.p, line.len, JSON_ALLOW_NUL, NULL);
	const char *name = json_string_value(json_object_get(root, "error"));
	const char *reason = json_string_value(json_object_get(root, "reason"));
	struct err err;
	int r = -EIO;

	for (size_t i = 0; name && i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strcmp(name, errors[i].name) == 0)
			r = -errors[i].error;
	(void)err_set(&err, r, "%s", reason ? reason : "the watch failed");
	json_decref(root);
	source->handler.on_over(source->handler.arg, r, &err);
}

/* False: it was the last. */
static bool take_line(struct file_source *source, struct slice line)
{
	const struct file_source_handler *handler = &source->handler;

	if (file_source_line_is(line, "failed")) {
		take_failure(source, line);
		return false;
	}
	if (file_source_line_is(line, "ended")) {
		handler->on_over(handler->arg, 0, NULL);
		return false;
	}
	if (!file_source_line_is(line, "began")) {
		handler->on_change(handler->arg, &line);
		return true;
	}
	(void)evtimer_del(source->late);
	handler->on_began(handler->arg);
	return true;
}

static void take_bytes(struct file_source *source, struct slice bytes)
{
	const struct file_source_handler *handler = &source->handler;
	bool goes_on = true;

	while (goes_on && !source->is_freed && file_lines_next(&source->lines, &bytes)) {
		if (source->lines.is_too_long)
			handler->on_change(handler->arg, NULL);
		else
			goes_on = take_line(source, str_slice(&source->lines.line));
		file_lines_reset(&source->lines);
	}
	if (goes_on && !source->is_freed)
		handler->on_read(handler->arg);
}

static void fail(struct file_source *source, int r, const char *why)
{
	struct err err;

	(void)err_set(&err, r, "%s", why);
	source->handler.on_over(source->handler.arg, r, &err);
}

static void on_lines(evutil_socket_t fd, short what, void *ctx)
{
	struct file_source *source = ctx;
	scoped_mem char *buf = mem_zero(1, READ_AT_ONCE);
	ssize_t n = read(fd, buf, READ_AT_ONCE);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	source->is_reading = true;
	if (n > 0)
		take_bytes(source, (struct slice){.p = buf, .len = (size_t)n});
	else
		fail(source, -EIO, "the watch was ended from outside: begin again");
	source->is_reading = false;
	if (source->is_freed)
		file_source_free(source);
}

/* ---- its start ---- */

static int ask_launcher(struct file_source *source)
{
	scoped_fd int there = launcher_ask_connect(source->server, source->sandbox, &source->err);
	scoped_fd int near = -1, far = -1;
	int pair[2], r;

	if (there < 0)
		return there; /* nothing of it runs */
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_set(&source->err, -errno, "make a pipe: %m");
	near = pair[0];
	far = pair[1];
	r = launcher_ask_watch(source->server,
		&(struct launcher_watch){.sandbox = source->sandbox,
			.path = str_slice(&source->path),
			.is_patient = source->is_patient,
			.out_fd = far},
		&source->err);
	if (r == 0)
		source->fd = take_fd(&near);
	return r;
}

static void run_ask(struct work *work)
{
	struct file_source *source = (struct file_source *)work;

	source->r = ask_launcher(source);
}

static void ask_done(struct work *work)
{
	struct file_source *source = (struct file_source *)work;

	source->is_working = false;
	if (source->is_freed) {
		file_source_free(source);
		return;
	}
	if (source->r < 0) {
		source->handler.on_over(source->handler.arg, source->r, &source->err);
		return;
	}
	(void)evutil_make_socket_nonblocking(source->fd);
	source->io =
		event_new(source->server->base, source->fd, EV_READ | EV_PERSIST, on_lines, source);
	event_add(source->io, NULL);
}

static void on_late(evutil_socket_t fd, short what, void *ctx)
{
	fail(ctx, -ETIMEDOUT, "reading the folders takes too long: watch a smaller one");
}

struct file_source *file_source_new(struct server *server, const struct file_source_ask *ask,
	const struct file_source_handler *handler)
{
	struct file_source *source = new0(struct file_source);
	const struct timeval in = {.tv_sec = START_S};

	source->work = (struct work){.run = run_ask, .done = ask_done};
	source->server = server;
	source->handler = *handler;
	memccpy(source->sandbox, ask->sandbox, '\0', sizeof(source->sandbox) - 1);
	str_add(&source->path, ask->path.p, ask->path.len);
	source->is_patient = ask->is_patient;
	source->fd = -1;
	source->late = evtimer_new(server->base, on_late, source);
	event_add(source->late, &in);
	source->is_working = true;
	workers_add(server->slow, &source->work);
	return source;
}
