/* SPDX-License-Identifier: Apache-2.0 */
/* Merges log and trace by seq. The writer flushes the trace before the log, so a log line that is there
 * means that all of the trace before it is there, too. The other way round the log may lag for a moment:
 * then a trace line whose number is not the next one waits, as long as a writer lives. */
#include "record/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/control_line.h"
#include "record/journal_seek.h"
#include "record/lines.h"
#include "record/record_blob.h"
#include "record/record_internal.h"
#include "record/record_journal.h"
#include "util/fdio.h"
#include "util/mem.h"

#define META_MAX (4U << 20)
#define SEAL_MAX 65536U

struct source {
	struct lines lines;
	unsigned segment; /* of trace: the one that is open, 0 for none; the log has none */
	bool has;         /* a line waits */
	bool is_unknown;  /* of a kind that a later version made */
	uint64_t seq;
	struct slice line;
	struct event_line *parsed;
};

struct reader {
	int dirfd;
	struct source log, trace;
	uint64_t next; /* the number that should come */
	uint64_t from; /* those before it are passed over */
	char *exec;    /* NULL, or: those without this text */
	uint64_t n_bad;
	struct slice line;
	struct str meta, seal;
	enum record_end end;
};

static int read_small(int dirfd, const char *name, size_t max, struct str *out)
{
	scoped_fd int fd = record_internal_open(dirfd, name, O_RDONLY, NULL);

	str_reset(out);
	if (fd == -ENOENT)
		return 0;
	return fd < 0 ? fd : fdio_read_all(fd, max, out);
}

/* What the seal says of the end; one that cannot be read says nothing. */
static enum record_end seal_end(const struct str *seal)
{
	json_t *root = json_loadb(seal->p ? seal->p : "", seal->len, JSON_REJECT_DUPLICATES, NULL);
	const char *text = json_string_value(json_object_get(root, "end"));
	enum record_end end = RECORD_OPEN;

	if (text)
		(void)record_head_find_end(slice_of(text), &end); /* else it stays open */
	json_decref(root);
	return end;
}

static int read_seal(struct reader *reader)
{
	int r = read_small(reader->dirfd, "seal.json", SEAL_MAX, &reader->seal);

	reader->end = r < 0 ? RECORD_OPEN : seal_end(&reader->seal);
	return r;
}

static int open_segment(struct reader *reader, unsigned segment)
{
	char name[RECORD_JOURNAL_NAME_SIZE];
	struct lines lines;
	int r;

	record_journal_file_name("trace", segment, name);
	r = lines_open(&lines, reader->dirfd, name);
	if (r < 0)
		return r;
	lines_done(&reader->trace.lines);
	reader->trace.lines = lines;
	reader->trace.segment = segment;
	return 0;
}

static int open_files(struct reader *reader, struct err *err)
{
	int r = lines_open(&reader->log.lines, reader->dirfd, "log.jsonl");
	bool has_log = r == 0;

	if (r < 0 && r != -ENOENT)
		return err_set(err, r, "log.jsonl: %m");
	r = open_segment(reader, 1);
	if (r < 0 && r != -ENOENT)
		return err_set(err, r, "trace-00001.jsonl: %m");
	if (r < 0 && !has_log)
		return err_set(err, r, "there is no journal in it");
	r = read_small(reader->dirfd, "meta.json", META_MAX, &reader->meta);
	if (r < 0)
		return err_set(err, r, "meta.json: %m");
	r = read_seal(reader);
	return r < 0 ? err_set(err, r, "seal.json: %m") : 0;
}

int reader_open(const char *dir, struct reader **ret_reader, struct err *err)
{
	scoped(reader) struct reader *reader = new0(struct reader);
	int r;

	reader->next = 1;
	reader->log.lines.fd = reader->trace.lines.fd = -1;
	reader->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (reader->dirfd < 0)
		return err_set(err, -errno, "open record '%s': %m", dir);
	r = open_files(reader, err);
	if (r < 0)
		return err_wrap(err, r, "read record '%s'", dir);
	*ret_reader = take(&reader);
	return 0;
}

/* ---- a place in the middle ---- */

/* The last file of the trace that begins before seq. */
static int find_segment(struct reader *reader, uint64_t seq)
{
	uint64_t first;
	int r = 0;

	if (reader->trace.segment == 0)
		return 0; /* none yet */
	while (r == 0 && reader->trace.segment < RECORD_JOURNAL_N_SEGMENTS)
		r = open_segment(reader, reader->trace.segment + 1);
	if (r < 0 && r != -ENOENT)
		return r;
	for (;;) {
		r = journal_seek_first(&reader->trace.lines, &first);
		if (r < 0 || (r == 1 && first <= seq) || reader->trace.segment == 1)
			return r < 0 ? r : 0;
		r = open_segment(reader, reader->trace.segment - 1);
		if (r < 0)
			return r;
	}
}

int reader_skip_to(struct reader *reader, uint64_t seq, struct err *err)
{
	int r = journal_seek(&reader->log.lines, seq);

	if (r < 0)
		return err_set(err, r, "read log.jsonl: %m");
	r = find_segment(reader, seq);
	if (r == 0)
		r = journal_seek(&reader->trace.lines, seq);
	if (r < 0)
		return err_set(err, r, "read trace-%05u.jsonl: %m", reader->trace.segment);
	reader->next = reader->from = seq;
	return 0;
}

void reader_only(struct reader *reader, struct slice exec)
{
	free(reader->exec);
	reader->exec = mem_copy(exec.p, exec.len);
}

static void done_source(struct source *source)
{
	lines_done(&source->lines);
	event_line_free(source->parsed);
}

void reader_free(struct reader *reader)
{
	if (!reader)
		return;
	done_source(&reader->log);
	done_source(&reader->trace);
	str_done(&reader->meta);
	str_done(&reader->seal);
	free(reader->exec);
	scoped_close(&reader->dirfd);
	free(reader);
}

static bool is_wanted(const struct reader *reader, struct slice line, uint64_t seq)
{
	static const char tracing[] = "\"kind\":\"trace.";

	if (seq < reader->from)
		return false;
	return !reader->exec || memmem(line.p, line.len, reader->exec, strlen(reader->exec)) ||
	       memmem(line.p, line.len, tracing, sizeof(tracing) - 1);
}

/* An event that is passed over, as one of an unknown kind is: its number counts. */
static bool pass_over(struct reader *reader, struct source *source, struct slice line)
{
	static const char start[] = "{\"v\":";
	uint64_t seq;

	if ((!reader->from && !reader->exec) || !slice_starts(line, start) ||
		control_line_seq(line, &seq) < 0 || is_wanted(reader, line, seq))
		return false;
	source->is_unknown = true;
	source->seq = seq;
	source->line = line;
	return true;
}

/* Takes a line as the one that waits: false where it is none to wait for. */
static bool take_line(struct reader *reader, struct source *source, struct slice line)
{
	struct control_line control = {0};
	int r;

	if (source->lines.is_long) {
		reader->n_bad++;
		return false;
	}
	if (pass_over(reader, source, line))
		return true;
	if (control_line_read(line, &control) != CONTROL_LINE_EVENT) {
		reader->n_bad += control.kind == CONTROL_LINE_BAD;
		control_line_done(&control);
		return false;
	}
	r = event_json_read(line, &source->parsed, NULL);
	source->is_unknown = r == -ENOENT;
	if (r == 0)
		source->seq = event_json_get(source->parsed)->seq;
	if ((r < 0 && (r != -ENOENT || control_line_seq(line, &source->seq) < 0)) ||
		source->seq > CONTROL_LINE_SEQ_MAX) {
		reader->n_bad++;
		return false;
	}
	source->line = line;
	return true;
}

/* The next line of any kind; the trace goes on in its next file, once that is there and this one is read. */
static int next_line(struct reader *reader, struct source *source, struct slice *ret_line)
{
	int r = lines_next(&source->lines, ret_line);

	while (r == 0 && source == &reader->trace) {
		char name[RECORD_JOURNAL_NAME_SIZE];
		struct stat st;

		record_journal_file_name("trace", source->segment + 1, name);
		if (source->segment >= RECORD_JOURNAL_N_SEGMENTS ||
			fstatat(reader->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
		r = lines_next(&source->lines, ret_line); /* what came in between */
		if (r != 0)
			break;
		reader->n_bad += lines_rest(&source->lines).len > 0;
		r = open_segment(reader, source->segment + 1);
		if (r == 0)
			r = lines_next(&source->lines, ret_line);
	}
	return r;
}

static int fill(struct reader *reader, struct source *source)
{
	struct slice line;
	int r = 0;

	while (!source->has && (r = next_line(reader, source, &line)) > 0)
		source->has = take_line(reader, source, line);
	return r < 0 ? r : 0;
}

/* The source whose line comes next, NULL where none may be given now. */
static struct source *choose(struct reader *reader)
{
	struct source *log = &reader->log, *trace = &reader->trace;

	if (log->has && (!trace->has || log->seq <= trace->seq))
		return log;
	if (!trace->has)
		return NULL;
	if (!log->has && trace->seq > reader->next && reader_is_live(reader))
		return NULL;
	return trace;
}

static int fill_both(struct reader *reader, struct err *err)
{
	struct source *log = &reader->log, *trace = &reader->trace;
	int r = fill(reader, log);

	if (r < 0)
		return err_set(err, r, "read log.jsonl: %m");
	r = fill(reader, trace);
	if (r < 0)
		return err_set(err, r, "read trace-%05u.jsonl: %m", trace->segment);
	if (!log->has && trace->has && trace->seq > reader->next)
		r = fill(reader, log); /* it may have come with the trace */
	return r < 0 ? err_set(err, r, "read log.jsonl: %m") : 0;
}

int reader_next(struct reader *reader, const struct event **ret_ev, struct err *err)
{
	for (;;) {
		struct source *source;
		int r = fill_both(reader, err);

		if (r < 0)
			return r;
		source = choose(reader);
		if (!source) {
			r = read_seal(reader);
			return r < 0 ? err_set(err, r, "read seal.json: %m") : 0;
		}
		source->has = false;
		if (source->seq >= reader->next)
			reader->next = source->seq + 1;
		if (source->is_unknown || source->seq < reader->from)
			continue;
		reader->line = source->line;
		*ret_ev = event_json_get(source->parsed);
		return 1;
	}
}

struct slice reader_line(const struct reader *reader)
{
	return reader->line;
}

struct slice reader_meta(const struct reader *reader)
{
	return str_slice(&reader->meta);
}

struct slice reader_seal(const struct reader *reader)
{
	return str_slice(&reader->seal);
}

int reader_blob(const struct reader *reader, struct slice sha256, size_t max, struct str *out)
{
	scoped_fd int fd = record_blob_open(reader->dirfd, sha256);
	char name[DIGEST_HEX_SIZE];
	size_t had = out->len;
	int r = fd < 0 ? fd : fdio_read_all(fd, max, out);

	if (r < 0)
		return r;
	digest_of(out->p + had, out->len - had, name);
	if (slice_is(sha256, name))
		return 0;
	out->len = had;
	return -EBADMSG;
}

uint64_t reader_n_bad(const struct reader *reader)
{
	return reader->n_bad;
}

bool reader_is_live(const struct reader *reader)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	if (reader->log.lines.fd < 0)
		return false;
	return fcntl(reader->log.lines.fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool reader_has_ended(const struct reader *reader)
{
	return reader->end == RECORD_FINAL || reader->end == RECORD_CUT;
}

static bool is_torn(const struct source *source)
{
	return source->lines.is_skipping || (!source->has && lines_rest(&source->lines).len > 0);
}

bool reader_is_suspended(const struct reader *reader)
{
	return reader->end == RECORD_SUSPENDED && !reader_is_live(reader);
}

bool reader_is_cut(const struct reader *reader)
{
	if (reader->end == RECORD_CUT)
		return true;
	return !reader_is_live(reader) &&
	       (reader->end == RECORD_OPEN || is_torn(&reader->log) || is_torn(&reader->trace));
}
