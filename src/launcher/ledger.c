/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/digest.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "util/utf8.h"

#define LEDGER_NAME "ledger.jsonl"
#define LINE_MAX_   65536U /* with its end; the texts in it are cut to fit */
#define TEXT_MAX    1024U  /* of one text: escaped it may take six times that */

static const char no_line[] = "0000000000000000000000000000000000000000000000000000000000000000";

/* What the next line needs to know of the file. */
struct ledger_end {
	off_t size; /* of the whole lines */
	uint64_t n; /* of the last of them */
	uint64_t torn;
	char prev[DIGEST_HEX_SIZE];
};

static int open_ledger(const char *state_dir, int flags)
{
	scoped_mem char *path = mem_printf("%s/" LEDGER_NAME, state_dir);
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? -errno : fd;
}

static uint64_t line_number(struct slice line)
{
	json_t *root = json_loadb(line.p, line.len, JSON_REJECT_DUPLICATES, NULL);
	uint64_t n = (uint64_t)json_integer_value(json_object_get(root, "n"));

	json_decref(root);
	return n;
}

/* Reads only the tail: the last whole line lies within two lines of the end. */
static int find_end(int fd, struct ledger_end *ret_end)
{
	struct ledger_end end = {0};
	scoped_str struct str tail = {0};
	const char *stop, *start;
	struct stat st;
	off_t from;
	ssize_t n;

	memcpy(end.prev, no_line, sizeof(end.prev));
	if (fstat(fd, &st) < 0)
		return -errno;
	from = st.st_size > (off_t)(2 * LINE_MAX_) ? st.st_size - (off_t)(2 * LINE_MAX_) : 0;
	str_reserve(&tail, 2 * LINE_MAX_);
	n = pread(fd, tail.p, 2 * LINE_MAX_, from);
	if (n < 0)
		return -errno;
	stop = memrchr(tail.p, '\n', (size_t)n);
	if (stop) {
		start = memrchr(tail.p, '\n', (size_t)(stop - tail.p));
		start = start ? start + 1 : tail.p;
		end.size = from + (stop + 1 - tail.p);
		end.n = line_number((struct slice){.p = start, .len = (size_t)(stop - start)});
		digest_of(start, (size_t)(stop + 1 - start), end.prev);
	} else if (from > 0) {
		return -EBADMSG;
	}
	end.torn = (uint64_t)(st.st_size - end.size);
	*ret_end = end;
	return 0;
}

static void add_text(struct jsonw *j, const char *key, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (text)
		jsonw_kslice(
			j, key, (struct slice){.p = text, .len = utf8_cut(text, len, TEXT_MAX)});
}

static void write_line(
	const struct ledger_line *line, const struct ledger_end *end, struct str *out)
{
	struct jsonw j = jsonw_to(out);
	char at[CLOCK_TEXT_LEN];

	clock_format(line->at_ms ? line->at_ms : clock_wall_ms(), at);
	jsonw_object(&j);
	jsonw_kint(&j, "v", 1);
	jsonw_kint(&j, "n", (int64_t)end->n + 1);
	jsonw_ktext(&j, "prev", end->prev);
	jsonw_ktext(&j, "at", at);
	add_text(&j, "act", line->act);
	add_text(&j, "sandbox", line->sandbox);
	jsonw_kint(&j, "owner", line->owner);
	if (line->head) {
		jsonw_kint(&j, "seq", (int64_t)line->seq);
		add_text(&j, "head", line->head);
	}
	add_text(&j, "actor", line->actor);
	add_text(&j, "detail", line->detail);
	if (end->torn)
		jsonw_kint(&j, "torn_bytes", (int64_t)end->torn);
	jsonw_object_end(&j);
	str_putc(out, '\n');
}

static bool wants_sync(const char *act)
{
	return strncmp(act, "remove", 6) == 0;
}

/* Others are on their way to the disk when this returns; waiting costs more than a whole short run. */
static int settle(int fd, const char *act)
{
	if (wants_sync(act))
		return fdatasync(fd) < 0 ? -errno : 0;
	(void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return 0;
}

static int append_locked(int fd, const struct ledger_line *line)
{
	scoped_str struct str text = {0};
	struct ledger_end end = {0};
	ssize_t n;
	int r = find_end(fd, &end);

	if (r < 0)
		return r;
	if (end.torn && ftruncate(fd, end.size) < 0)
		return -errno;
	write_line(line, &end, &text);
	n = write(fd, text.p, text.len);
	if (n < 0)
		return -errno;
	if ((size_t)n < text.len) {
		(void)ftruncate(fd, end.size); /* else the next one takes it off */
		return -ENOSPC;
	}
	return settle(fd, line->act);
}

int ledger_append(const char *state_dir, const struct ledger_line *line, struct err *err)
{
	scoped_fd int fd = open_ledger(state_dir, O_RDWR | O_CREAT | O_APPEND);
	int r;

	if (fd < 0)
		return err_set(err, fd, "open the ledger in '%s': %m", state_dir);
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_set(err, -errno, "lock the ledger: %m");
	r = append_locked(fd, line);
	return r < 0 ? err_set(err, r, "write the ledger in '%s': %m", state_dir) : 0;
}

struct walk {
	int (*on_line)(void *ctx, const struct ledger_line *line);
	void *ctx;
	uint64_t n;
	char prev[DIGEST_HEX_SIZE];
};

static const char *member(const json_t *root, const char *key)
{
	return json_string_value(json_object_get(root, key));
}

static int give_line(struct walk *walk, const json_t *root)
{
	struct ledger_line line = {.act = member(root, "act"),
		.sandbox = member(root, "sandbox"),
		.head = member(root, "head"),
		.actor = member(root, "actor"),
		.detail = member(root, "detail"),
		.seq = (uint64_t)json_integer_value(json_object_get(root, "seq")),
		.owner = (uid_t)json_integer_value(json_object_get(root, "owner"))};
	const char *at = member(root, "at");

	if (!line.act || !line.sandbox || !at || clock_parse(at, &line.at_ms) < 0)
		return -EBADMSG;
	return walk->on_line(walk->ctx, &line);
}

static int walk_line(struct walk *walk, struct slice line, struct err *err)
{
	json_t *root = json_loadb(line.p, line.len - 1, JSON_REJECT_DUPLICATES, NULL);
	const char *prev = member(root, "prev");
	int r = -EBADMSG;

	walk->n++;
	if (!root || !prev)
		(void)err_set(err, r, "line %llu of the ledger is none of ours",
			(unsigned long long)walk->n);
	else if (strcmp(prev, walk->prev) != 0 && walk->n > 1)
		(void)err_set(err, r,
			"the ledger's chain breaks before line %llu: a line there was changed, "
			"added or removed",
			(unsigned long long)walk->n);
	else if (strcmp(prev, walk->prev) != 0)
		(void)err_set(err, r, "the ledger does not begin with its first line");
	else
		r = give_line(walk, root);
	json_decref(root);
	digest_of(line.p, line.len, walk->prev);
	return r;
}

/* All whole lines of what was read; the rest moves to the front. */
static int walk_lines(struct walk *walk, struct str *buf, struct err *err)
{
	size_t at = 0;
	int r = 0;

	while (r == 0) {
		const char *stop = memchr(buf->p + at, '\n', buf->len - at);
		size_t len = stop ? (size_t)(stop + 1 - (buf->p + at)) : 0;

		if (!stop)
			break;
		r = walk_line(walk, (struct slice){.p = buf->p + at, .len = len}, err);
		at += len;
	}
	memmove(buf->p, buf->p + at, buf->len - at);
	buf->len -= at;
	return r;
}

static int walk_file(struct walk *walk, int fd, struct err *err)
{
	scoped_str struct str buf = {0};
	ssize_t n;
	int r = 0;

	do {
		if (buf.len > LINE_MAX_)
			return err_set(err, -EBADMSG, "line %llu of the ledger is too long",
				(unsigned long long)walk->n + 1);
		str_reserve(&buf, LINE_MAX_);
		n = fdio_read_full(fd, buf.p + buf.len, LINE_MAX_);
		if (n < 0)
			return err_set(err, (int)n, "read the ledger: %m");
		buf.len += (size_t)n;
		r = walk_lines(walk, &buf, err);
	} while (n > 0 && r == 0);
	return r;
}

int ledger_walk(const char *state_dir, int (*on_line)(void *ctx, const struct ledger_line *line),
	void *ctx, struct err *err)
{
	struct walk walk = {.on_line = on_line, .ctx = ctx};
	scoped_fd int fd = open_ledger(state_dir, O_RDONLY);

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return err_set(err, fd, "open the ledger in '%s': %m", state_dir);
	memcpy(walk.prev, no_line, sizeof(walk.prev));
	return walk_file(&walk, fd, err);
}

struct act_search {
	const char *sandbox, *act;
};

static int on_act(void *ctx, const struct ledger_line *line)
{
	const struct act_search *search = ctx;

	return strcmp(line->sandbox, search->sandbox) == 0 && strcmp(line->act, search->act) == 0;
}

int ledger_has_act(const char *state_dir, const char *sandbox, const char *act)
{
	struct act_search search = {.sandbox = sandbox, .act = act};

	return ledger_walk(state_dir, on_act, &search, NULL);
}

struct head_search {
	const char *sandbox;
	char *head;
	uint64_t seq;
	bool found;
};

static int on_head(void *ctx, const struct ledger_line *line)
{
	struct head_search *search = ctx;

	if (!line->head || strcmp(line->sandbox, search->sandbox) != 0 || line->seq < search->seq)
		return 0;
	memccpy(search->head, line->head, '\0', LEDGER_HEAD_SIZE);
	search->head[LEDGER_HEAD_SIZE - 1] = '\0';
	search->seq = line->seq;
	search->found = true;
	return 0;
}

int ledger_find_head(const char *state_dir, const char *sandbox, char ret_head[LEDGER_HEAD_SIZE],
	uint64_t *ret_seq, struct err *err)
{
	struct head_search search = {.sandbox = sandbox, .head = ret_head};
	int r = ledger_walk(state_dir, on_head, &search, err);

	if (r < 0)
		return r;
	*ret_seq = search.seq;
	return search.found ? 0 : -ENOENT;
}
