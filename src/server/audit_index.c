/* SPDX-License-Identifier: Apache-2.0 */
#include "server/audit_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/complaint.h"
#include "server/keep.h"
#include "server/launcher_ask.h"
#include "server/workers.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/mem.h"

#define AT_ONCE   500 /* rows of one call to the store */
#define PIECE     (256 << 10)
#define LINE_MAX_ (64 << 10) /* of the journal */
#define NEAR      (1 << 20)  /* of the file that is read rather than searched */
#define AGAIN_MS  5000

/* ---- lines ---- */

static const char *text_of(const json_t *line, const char *key)
{
	return json_string_value(json_object_get(line, key));
}

/* The members that chain it are the journal's own. text is what the row points to. */
static int make_row(const struct server *server, const json_t *line, struct store_event *ret_row,
	char **ret_text)
{
	const char *at = text_of(line, "at"), *account = text_of(line, "account");
	struct store_event row = {.place = server->host,
		.account = account ? account : "",
		.seq = json_integer_value(json_object_get(line, "n")),
		.kind = text_of(line, "act")};
	json_t *copy;

	if (row.seq <= 0 || !row.kind || !at || clock_parse(at, &row.at_ms) < 0)
		return -EBADMSG;
	copy = json_copy((json_t *)line);
	(void)json_object_del(copy, "v");
	(void)json_object_del(copy, "prev");
	(void)json_object_del(copy, "torn_bytes"); /* may not be there */
	row.json = *ret_text = json_dumps(copy, JSON_COMPACT);
	json_decref(copy);
	*ret_row = row;
	return 0;
}

static int not_ours(struct err *err)
{
	return err_set(err, -EBADMSG,
		"a line of the audit journal is none of ours: `cloche verify --all` says which");
}

/* ---- all that are missing ---- */

struct gathered {
	struct store_event rows[AT_ONCE];
	char *texts[AT_ONCE];
	json_t *lines[AT_ONCE];
	size_t n;
};

struct reading {
	struct server *server;
	struct audit_counts *counts;
	const atomic_bool *is_ending;
	int64_t from, oldest_ms;
	struct gathered g;
};

static void let_go(struct gathered *g)
{
	for (size_t i = 0; i < g->n; i++) {
		free(g->texts[i]);
		json_decref(g->lines[i]);
	}
	g->n = 0;
}

static int flush(struct reading *reading, struct err *err)
{
	struct gathered *g = &reading->g;
	int r = g->n ? store_audit_add(reading->server->store, g->rows, g->n, err) : 0;

	let_go(g);
	reading->counts->changed += r > 0 ? r : 0;
	if (r >= 0 && reading->is_ending && atomic_load(reading->is_ending))
		return -ECANCELED;
	return r < 0 ? r : 0;
}

/* In a database that was put back from an old copy a key may stand that was revoked since. 0 also where it does not. */
static int revoke_again(
	struct reading *reading, const json_t *line, const struct store_event *row, struct err *err)
{
	const char *key = text_of(line, "object");
	int r;

	if (strcmp(row->kind, AUDIT_INDEX_REVOKED) != 0 || !key || !*row->account)
		return 0;
	r = store_key_revoke(reading->server->store, row->account, key, row->at_ms, err);
	reading->counts->revoked += r == 0;
	return r == -ENOENT ? 0 : r;
}

static int take_line(struct reading *reading, struct slice text, struct err *err)
{
	struct gathered *g = &reading->g;
	json_t *line = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, NULL);
	struct store_event *row = &g->rows[g->n];
	int r;

	if (!line || make_row(reading->server, line, row, &g->texts[g->n]) < 0) {
		json_decref(line);
		return not_ours(err);
	}
	reading->counts->lines++;
	r = revoke_again(reading, line, row, err);
	if (r < 0) {
		free(g->texts[g->n]);
		json_decref(line);
		return r;
	}
	if (row->at_ms < reading->oldest_ms || row->seq < reading->from) {
		reading->counts->old += row->at_ms < reading->oldest_ms;
		free(g->texts[g->n]);
		json_decref(line);
		return 0;
	}
	g->lines[g->n++] = line;
	return g->n == AT_ONCE ? flush(reading, err) : 0;
}

/* Whole lines from offset at on; what is behind the last line end is still being written. */
static int read_lines(struct reading *reading, int fd, off_t at, struct err *err)
{
	scoped_str struct str buf = {0};
	ssize_t n;
	int r = 0;

	do {
		size_t used = 0;

		str_reserve(&buf, PIECE);
		n = pread(fd, buf.p + buf.len, PIECE, at + (off_t)buf.len);
		if (n < 0)
			return err_set(err, -errno, "read the audit journal: %m");
		buf.len += (size_t)n;
		while (r == 0 && used < buf.len) {
			const char *end = memchr(buf.p + used, '\n', buf.len - used);

			if (!end)
				break;
			r = take_line(reading,
				(struct slice){buf.p + used, (size_t)(end - buf.p) - used}, err);
			used = (size_t)(end + 1 - buf.p);
		}
		at += (off_t)used;
		memmove(buf.p, buf.p + used, buf.len - used);
		buf.len -= used;
	} while (n > 0 && r == 0);
	return r < 0 ? r : flush(reading, err);
}

/* Where the first whole line behind an offset begins, and its number; 0 where there is none near. */
static int64_t line_behind(int fd, off_t at, off_t *ret_begin)
{
	scoped_mem char *buf = mem_zero(1, 2 * LINE_MAX_);
	ssize_t n = pread(fd, buf, 2 * LINE_MAX_, at);
	char *begin = n > 0 ? memchr(buf, '\n', (size_t)n) : NULL, *end;
	json_t *line;
	int64_t number;

	end = begin ? memchr(begin + 1, '\n', (size_t)(buf + n - begin - 1)) : NULL;
	if (!end)
		return 0;
	line = json_loadb(begin + 1, (size_t)(end - begin - 1), 0, NULL);
	number = json_integer_value(json_object_get(line, "n"));
	json_decref(line);
	*ret_begin = at + (begin + 1 - buf);
	return number;
}

/* A place before line number, and not far: lines are in the order of their numbers. */
static off_t place_of(int fd, int64_t number)
{
	struct stat st;
	off_t low = 0, high = fstat(fd, &st) == 0 ? st.st_size : 0;

	while (high - low > NEAR) {
		off_t middle = low + (high - low) / 2, begin = 0;
		int64_t n = line_behind(fd, middle, &begin);

		if (n > 0 && n <= number)
			low = begin;
		else
			high = middle;
	}
	return low;
}

int audit_index_mend(struct server *server, bool is_all, const atomic_bool *is_ending,
	struct audit_counts *counts, struct err *err)
{
	struct reading *reading;
	scoped_fd int fd = launcher_ask_journal(server, err);
	int64_t from;
	int r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd; /* nothing was ever entered */
	from = is_all ? 1 : store_audit_hole(server->store, server->host, err);
	if (from < 0)
		return (int)from;
	reading = new0(struct reading);
	reading->server = server;
	reading->counts = counts;
	reading->is_ending = is_ending;
	reading->from = from;
	reading->oldest_ms = clock_wall_ms() - keep_ms(server->config, KEEP_AUDIT);
	r = read_lines(reading, fd, place_of(fd, from), err);
	let_go(&reading->g);
	free(reading);
	return r;
}

/* ---- by itself ---- */

struct audit_mender {
	struct work work; /* one at a time */
	struct server *server;
	struct event *timer;
	atomic_bool is_wanted, is_ending;
	struct complaint failing;
};

static void run(struct work *work)
{
	struct audit_mender *mender = (struct audit_mender *)work;
	struct audit_counts counts = {0};
	struct err err = {0};
	int r;

	atomic_store(&mender->is_wanted, false);
	r = audit_index_mend(mender->server, false, &mender->is_ending, &counts, &err);
	if (r >= 0 || r == -ECANCELED)
		return;
	complaint_warn(&mender->failing, "the audit log is behind its journal: %s", err.msg);
	atomic_store(&mender->is_wanted, true);
}

static void wait_for_next(struct audit_mender *mender)
{
	const struct timeval wait = {.tv_sec = AGAIN_MS / 1000};

	if (!atomic_load(&mender->is_ending))
		evtimer_add(mender->timer, &wait);
}

static void done(struct work *work)
{
	wait_for_next((struct audit_mender *)work);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct audit_mender *mender = ctx;

	if (!atomic_load(&mender->is_wanted)) {
		wait_for_next(mender);
		return;
	}
	mender->work = (struct work){.run = run, .done = done};
	workers_add(mender->server->slow, &mender->work);
}

struct audit_mender *audit_mender_new(struct server *server)
{
	struct audit_mender *mender = new0(struct audit_mender);
	const struct timeval now = {0};

	mender->server = server;
	atomic_store(&mender->is_wanted, true);
	mender->timer = evtimer_new(server->base, on_timer, mender);
	evtimer_add(mender->timer, &now);
	return mender;
}

void audit_mender_stop(struct audit_mender *mender)
{
	if (!mender)
		return;
	atomic_store(&mender->is_ending, true);
	(void)evtimer_del(mender->timer);
}

void audit_mender_free(struct audit_mender *mender)
{
	if (!mender)
		return;
	event_free(mender->timer);
	free(mender);
}

int audit_index_add(struct server *server, const json_t *line, struct err *err)
{
	struct store_event row;
	scoped_mem char *text = NULL;
	struct err why;

	if (make_row(server, line, &row, &text) < 0)
		return not_ours(err);
	if (store_audit_add(server->store, &row, 1, &why) < 0 && server->audit_mender)
		atomic_store(&server->audit_mender->is_wanted, true);
	return 0;
}
