/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/chain.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/digest.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/scoped.h"

#define LINE_MAX_ 65536U /* with its end */

static const char no_line[] = "0000000000000000000000000000000000000000000000000000000000000000";

/* What the next line needs to know of the file. */
struct chain_end {
	off_t size; /* of the whole lines */
	uint64_t n; /* of the last of them */
	uint64_t torn;
	char prev[DIGEST_HEX_SIZE];
};

static int open_file(const struct chain *chain, int flags)
{
	scoped_mem char *path = mem_printf("%s/%s", chain->dir, chain->name);
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
static int find_end(int fd, struct chain_end *ret_end)
{
	struct chain_end end = {0};
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

static int write_line(struct slice members, const struct chain_end *end, struct str *out)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_kint(&j, "v", 1);
	jsonw_kint(&j, "n", (int64_t)end->n + 1);
	jsonw_ktext(&j, "prev", end->prev);
	if (members.len > 2) {
		str_putc(out, ',');
		str_add(out, members.p + 1, members.len - 2);
	}
	if (end->torn)
		jsonw_kint(&j, "torn_bytes", (int64_t)end->torn);
	jsonw_object_end(&j);
	str_putc(out, '\n');
	return out->len > LINE_MAX_ ? -E2BIG : 0;
}

/* Others are on their way to the disk when this returns; waiting costs more than a whole short run. */
static int settle(int fd, bool is_synced)
{
	if (is_synced)
		return fdatasync(fd) < 0 ? -errno : 0;
	(void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return 0;
}

static int append_locked(int fd, struct slice members, bool is_synced, struct str *ret_line)
{
	scoped_str struct str text = {0};
	struct chain_end end = {0};
	ssize_t n;
	int r = find_end(fd, &end);

	if (r == 0)
		r = write_line(members, &end, &text);
	if (r < 0)
		return r;
	if (end.torn && ftruncate(fd, end.size) < 0)
		return -errno;
	n = write(fd, text.p, text.len);
	if (n < 0)
		return -errno;
	if ((size_t)n < text.len) {
		(void)ftruncate(fd, end.size); /* else the next one takes it off */
		return -ENOSPC;
	}
	if (ret_line)
		str_add(ret_line, text.p, text.len - 1);
	return settle(fd, is_synced);
}

int chain_append(const struct chain *chain, struct slice members, bool is_synced,
	struct str *ret_line, struct err *err)
{
	scoped_fd int fd = open_file(chain, O_RDWR | O_CREAT | O_APPEND);
	int r;

	if (fd < 0)
		return err_set(err, fd, "open %s in '%s': %m", chain->what, chain->dir);
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_set(err, -errno, "lock %s: %m", chain->what);
	r = append_locked(fd, members, is_synced, ret_line);
	return r < 0 ? err_set(err, r, "write %s in '%s': %m", chain->what, chain->dir) : 0;
}

struct walk {
	const struct chain *chain;
	int (*on_line)(void *ctx, const json_t *line);
	void *ctx;
	uint64_t n;
	char prev[DIGEST_HEX_SIZE];
};

static int walk_line(struct walk *walk, struct slice line, struct err *err)
{
	json_t *root = json_loadb(line.p, line.len - 1, JSON_REJECT_DUPLICATES, NULL);
	const char *prev = json_string_value(json_object_get(root, "prev"));
	const char *what = walk->chain->what;
	bool is_next = prev && strcmp(prev, walk->prev) == 0;
	int r;

	walk->n++;
	r = is_next ? walk->on_line(walk->ctx, root) : -EBADMSG;
	if (r == -EBADMSG && (is_next || !prev))
		(void)err_set(err, r, "line %llu of %s is none of ours",
			(unsigned long long)walk->n, what);
	else if (r == -EBADMSG && walk->n == 1)
		(void)err_set(err, r, "%s does not begin with its first line", what);
	else if (r == -EBADMSG)
		(void)err_set(err, r,
			"%s's chain breaks before line %llu: a line there was changed, added or "
			"removed",
			what, (unsigned long long)walk->n);
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
			return err_set(err, -EBADMSG, "line %llu of %s is too long",
				(unsigned long long)walk->n + 1, walk->chain->what);
		str_reserve(&buf, LINE_MAX_);
		n = fdio_read_full(fd, buf.p + buf.len, LINE_MAX_);
		if (n < 0)
			return err_set(err, (int)n, "read %s: %m", walk->chain->what);
		buf.len += (size_t)n;
		r = walk_lines(walk, &buf, err);
	} while (n > 0 && r == 0);
	return r;
}

int chain_open(const struct chain *chain, struct err *err)
{
	int fd = open_file(chain, O_RDONLY);

	return fd < 0 ? err_set(err, fd, "open %s in '%s': %m", chain->what, chain->dir) : fd;
}

int chain_walk(const struct chain *chain, int (*on_line)(void *ctx, const json_t *line), void *ctx,
	struct err *err)
{
	struct walk walk = {.chain = chain, .on_line = on_line, .ctx = ctx};
	scoped_fd int fd = chain_open(chain, err);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	memcpy(walk.prev, no_line, sizeof(walk.prev));
	return walk_file(&walk, fd, err);
}
