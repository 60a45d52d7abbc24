/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams of the same kind: one that ends where the record ends now, and with follow another, which goes on behind it.
 * One that is cut off is asked for again behind the last event that came, so nothing is missed or told twice. */
#include "remote/remote_feed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "event/event_json.h"
#include "record/lines.h"
#include "remote/request.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"

#define PATIENCE_MS 120000 /* how long a server may be away */
#define FIRST_MS    50     /* until the first try */
#define PAUSE_MS    500    /* between two others */
#define BUFFER      (256u << 10)

struct remote_feed {
	struct feed feed;
	struct link *link;
	char id[ID_SIZE];
	int fd;           /* the file */
	struct str ahead; /* that is not in it yet */
	struct lines lines;
	struct event_line *parsed;
	char last[24]; /* id of the last event that came; "": none */
	uint64_t n_bad;
	struct transfer *stream; /* NULL: none is under way */
	bool follow, has_ended;
	int64_t lost_ms, again_ms; /* since when it is away, and when to try again */
	int failure;               /* negative: for good */
	struct err err;
};

/* ---- what comes ---- */

static int flush(struct remote_feed *f)
{
	int r = f->ahead.len ? fdio_write_all(f->fd, f->ahead.p, f->ahead.len) : 0;

	str_reset(&f->ahead);
	return r < 0 ? err_set(&f->err, r, "keep events in a temporary file: %m") : 0;
}

/* A line of a journal is one line, and has no control characters in it. */
static bool is_line(struct slice data)
{
	for (size_t i = 0; i < data.len; i++)
		if ((unsigned char)data.p[i] < ' ' || data.p[i] == 0x7f)
			return false;
	return data.len > 0;
}

static int on_event(void *ctx, const struct sse_event *event)
{
	struct remote_feed *f = ctx;

	f->lost_ms = 0;
	if (event->id.len && event->id.len < sizeof(f->last)) {
		memcpy(f->last, event->id.p, event->id.len);
		f->last[event->id.len] = '\0';
	}
	if (slice_is(event->name, "end"))
		f->has_ended = true;
	if (slice_is(event->name, "error"))
		return err_set(&f->err, -EIO, "the record of %s cannot be read any further", f->id);
	if (!slice_is(event->name, "trace"))
		return 0;
	if (!is_line(event->data)) {
		f->n_bad++;
		return 0;
	}
	str_add(&f->ahead, event->data.p, event->data.len);
	str_putc(&f->ahead, '\n');
	return f->ahead.len > BUFFER ? flush(f) : 0;
}

static void begin(struct remote_feed *f, bool follow)
{
	scoped_mem char *path = mem_printf(
		"/v1/sandboxes/%s/watch?events=true&follow=%s", f->id, follow ? "true" : "false");

	f->stream = transfer_start(f->link, &(struct ask){.path = path,
						    .accept = "text/event-stream",
						    .after = f->last[0] ? f->last : NULL,
						    .on_event = on_event,
						    .ctx = f});
}

/* Whether it may be asked for again, now or later. */
static bool may_pass(int r)
{
	return r == -ECONNREFUSED || r == -ECONNRESET || r == -EAGAIN;
}

/* The stream is over. Where that was not the record's end, it is tried again, for some time. */
static void settle(struct remote_feed *f)
{
	int64_t now = clock_mono_ns() / CLOCK_NS_PER_MS;
	int r = request_check(f->link, f->stream, &f->err);

	transfer_free(take(&f->stream));
	if (r == 0 && !f->has_ended)
		r = err_set(&f->err, -ECONNRESET, "the connection to %s was lost",
			f->link->address.shown);
	if (r == 0)
		return;
	if (!f->lost_ms) {
		f->lost_ms = now;
		if (f->last[0] && may_pass(r))
			log_info("%s: trying again", f->err.msg);
	}
	if (!may_pass(r) || now - f->lost_ms > PATIENCE_MS || !f->last[0])
		f->failure = r;
	f->again_ms = now + (f->lost_ms == now ? FIRST_MS : PAUSE_MS);
}

/* ---- all that there is ---- */

static void pause_until(int64_t at_ms)
{
	int64_t left = at_ms - clock_mono_ns() / CLOCK_NS_PER_MS;
	struct timespec t = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * CLOCK_NS_PER_MS};

	if (left > 0)
		(void)nanosleep(&t, NULL);
}

static int take_all(struct remote_feed *f)
{
	while (!f->has_ended && f->failure == 0) {
		begin(f, false);
		transfer_wait(f->link, f->stream);
		settle(f);
		if (!f->has_ended && f->failure == 0)
			pause_until(f->again_ms);
	}
	if (f->failure == 0)
		f->failure = flush(f);
	f->has_ended = f->has_ended && !f->follow; /* of what there was */
	return f->failure;
}

/* ---- as a feed ---- */

/* For one that follows: begins the stream, or takes note of its end. */
static int go_on(struct remote_feed *f, struct err *err)
{
	if (f->stream && f->stream->is_over)
		settle(f);
	if (f->failure == 0 && !f->stream && f->follow && !f->has_ended &&
		clock_mono_ns() / CLOCK_NS_PER_MS >= f->again_ms)
		begin(f, true);
	if (f->failure == 0)
		f->failure = flush(f);
	if (f->failure < 0 && err)
		*err = f->err;
	return f->failure;
}

/* 1, or 0 where there is none. */
static int next_line(struct remote_feed *f, const struct event **ret_ev, struct slice *ret_line)
{
	int r;

	while ((r = lines_next(&f->lines, ret_line)) == 1) {
		int parsed = event_json_read(*ret_line, &f->parsed, NULL);

		if (parsed == 0) {
			*ret_ev = event_json_get(f->parsed);
			return 1;
		}
		f->n_bad += parsed != -ENOENT; /* a kind of a later version is none of ours */
	}
	return r;
}

static int next(
	struct feed *feed, const struct event **ret_ev, struct slice *ret_line, struct err *err)
{
	struct remote_feed *f = (struct remote_feed *)feed;
	int r = next_line(f, ret_ev, ret_line);

	if (r != 0)
		return r;
	r = go_on(f, err);
	return r < 0 ? r : next_line(f, ret_ev, ret_line);
}

static int rewind_feed(struct feed *feed, struct err *err)
{
	struct remote_feed *f = (struct remote_feed *)feed;
	int fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return err_set(err, -errno, "read a temporary file again: %m");
	lines_done(&f->lines);
	f->lines.fd = fd;
	f->n_bad = 0;
	return 0;
}

static bool is_live(const struct feed *feed)
{
	const struct remote_feed *f = (const struct remote_feed *)feed;

	return f->follow && !f->has_ended && f->failure == 0;
}

static int blob(struct feed *feed, struct slice sha256, size_t max, struct str *out)
{
	struct remote_feed *f = (struct remote_feed *)feed;
	scoped_mem char *path =
		mem_printf("/v1/sandboxes/%s/blobs/%.*s", f->id, (int)sha256.len, sha256.p);
	scoped_str struct str body = {0};
	int r = request_text(f->link,
		&(struct ask){.path = path, .accept = "application/octet-stream"}, &body, NULL);

	if (r == 0)
		str_add(out, body.p ? body.p : "", body.len < max ? body.len : max);
	return r;
}

static uint64_t n_bad(const struct feed *feed)
{
	return ((const struct remote_feed *)feed)->n_bad;
}

static void free_feed(struct feed *feed)
{
	struct remote_feed *f = (struct remote_feed *)feed;

	transfer_free(f->stream);
	lines_done(&f->lines);
	scoped_close(&f->fd);
	event_line_free(f->parsed);
	str_done(&f->ahead);
	free(f);
}

static const struct feed_kind kind = {
	.next = next,
	.rewind = rewind_feed,
	.is_live = is_live,
	.blob = blob,
	.n_bad = n_bad,
	.free = free_feed,
};

static int open_file(struct remote_feed *f, struct err *err)
{
	const char *folder = getenv("TMPDIR");

	folder = folder && *folder ? folder : "/tmp";
	f->fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	if (f->fd < 0)
		return err_set(err, -errno, "make a temporary file in '%s' (TMPDIR): %m", folder);
	return rewind_feed(&f->feed, err);
}

int remote_feed_open(
	struct link *link, const char *id, bool follow, struct feed **ret_feed, struct err *err)
{
	struct remote_feed *f = new0(struct remote_feed);
	int r;

	f->feed.kind = &kind;
	f->link = link;
	f->follow = follow;
	f->fd = f->lines.fd = -1;
	memcpy(f->id, id, ID_SIZE);
	r = open_file(f, err);
	if (r == 0) {
		r = take_all(f);
		if (r < 0 && err)
			*err = f->err;
	}
	if (r < 0) {
		free_feed(&f->feed);
		return r;
	}
	*ret_feed = &f->feed;
	return 0;
}
