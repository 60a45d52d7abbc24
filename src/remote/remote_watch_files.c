/* SPDX-License-Identifier: Apache-2.0 */
/* watch-files: what changes below a folder, as the server streams it; goes on behind the last change where the connection was
 * lost. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/records.h"
#include "cli/verb_options.h"
#include "cli/watch_files_text.h"
#include "remote/remote_verbs.h"
#include "remote/request.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

#define PATIENCE_MS 120000 /* how long a server may be away */
#define LAST_MAX    64

struct watching {
	const struct cli *cli;
	char id[ID_SIZE], last[LAST_MAX]; /* last: id of the last change; "": none yet */
	struct str url;
	bool has_begun, has_ended;
	int64_t lost_ms;
	struct err err;
};

static int print_change(struct watching *w, struct slice json)
{
	struct view_style style = cli_style(w->cli);
	scoped_str struct str out = {0};
	json_t *change = json_loadb(json.p, json.len, JSON_ALLOW_NUL, NULL);

	json_decref(change);
	if (!change)
		return err_set(&w->err, -EIO, "a change that the server tells is no JSON");
	if (w->cli->json || w->cli->jsonl)
		str_add(&out, json.p, json.len);
	else
		watch_files_text_add(&out, &style, json);
	str_putc(&out, '\n');
	return cli_print(&out, &w->err);
}

static void say_gap(struct slice json)
{
	json_t *gap = json_loadb(json.p, json.len, JSON_ALLOW_NUL, NULL);
	const char *reason = json_string_value(json_object_get(gap, "reason"));

	log_warn("some changes are not told: %s", reason ? reason : "it is not said why");
	json_decref(gap);
}

static void say_begin(struct watching *w, const char *path)
{
	if (!w->has_begun && !w->cli->quiet)
		log_warn("watching %s of sandbox %s; Ctrl-C ends it", path, w->id);
	w->has_begun = true;
}

static int on_event(void *ctx, const struct sse_event *event)
{
	struct watching *w = ctx;

	w->lost_ms = 0;
	if (event->id.len > 0 && event->id.len < LAST_MAX) {
		memcpy(w->last, event->id.p, event->id.len);
		w->last[event->id.len] = '\0';
	}
	if (slice_is(event->name, "begin"))
		say_begin(w, w->url.p);
	else if (slice_is(event->name, "change"))
		return print_change(w, event->data);
	else if (slice_is(event->name, "gap"))
		say_gap(event->data);
	else if (slice_is(event->name, "end"))
		w->has_ended = true;
	return 0;
}

/* 0: to be asked for again. */
static int watch_once(struct watching *w, const char *path, struct err *err)
{
	struct link *link = link_of(w->cli);
	scoped(transfer) struct transfer *stream =
		transfer_start(link, &(struct ask){.path = path,
					     .accept = "text/event-stream",
					     .after = w->last[0] ? w->last : NULL,
					     .on_event = on_event,
					     .ctx = w});
	int64_t now;
	int r;

	transfer_wait(link, stream);
	r = stream->handler_error < 0 ? stream->handler_error : request_check(link, stream, err);
	if (stream->handler_error < 0)
		*err = w->err;
	now = clock_mono_ns() / CLOCK_NS_PER_MS;
	w->lost_ms = w->lost_ms ? w->lost_ms : now;
	if (r == 0 || !w->has_begun || now - w->lost_ms > PATIENCE_MS)
		return r;
	return r == -ECONNREFUSED || r == -ECONNRESET || r == -EAGAIN ? 0 : r;
}

static int watch_all(struct watching *w, const char *path, struct err *err)
{
	scoped_str struct str url = {0};
	int r = 0;

	str_printf(&url, "/v1/sandboxes/%s/files/watch?path=", w->id);
	address_add_part(&url, path);
	str_puts(&w->url, path);
	while (r == 0 && !w->has_ended) {
		r = watch_once(w, url.p, err);
		if (r == 0 && !w->has_ended)
			(void)sleep(1);
	}
	if (r == 0 && !w->cli->quiet)
		log_warn("sandbox %s has ended, or was suspended", w->id);
	return r;
}

int remote_watch_files(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct watch_files_options *o = options;
	struct watching w = {.cli = cli};
	int r;

	if (o->bounds || o->wait || o->files)
		return remote_verbs_refuse(&verb_watch_files, "not with a server",
			"--bounds, --wait and --files are for the server's own use");
	if (args[1][0] != '/')
		return remote_verbs_refuse(&verb_watch_files, "not with a server",
			"a relative path is below where commands start, which the server does not "
			"tell: want an absolute one");
	r = records_resolve(cli, args[0], w.id, err);
	if (r == 0)
		r = watch_all(&w, args[1], err);
	str_done(&w.url);
	return r;
}
