/* SPDX-License-Identifier: Apache-2.0 */
/* A writer that dies leaves each journal in one of these shapes: ending with a hash line; with whole lines
 * behind it (a batch half written); with a torn line or a hole of zeros at the end. Whole lines stay and
 * open the next batch, the rest moves to torn.bin. The two journals were written one after the other, so
 * numbers may be missing: each such range becomes a gap line, and only those gaps does verify accept.
 *
 * Whether what is there was altered is not asked here: the chain goes on, and verify will tell. */
#include "record/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/control_line.h"
#include "record/lines.h"
#include "record/record_files.h"
#include "util/fdio.h"
#include "util/map.h"
#include "util/mem.h"

#define TORN_NAME "torn.bin"
#define TORN_MAX  (1U << 20) /* kept of one torn end; all of it is counted */
#define GAPS_MAX  1000U      /* ranges told one by one; the last then takes all that follow */
#define EXEC_END  "\"kind\":\"exec.end\""

struct numbers {
	uint64_t *seqs;
	size_t n, cap;
};

struct scan {
	struct record_journal *journal;
	struct control_line control;
	struct numbers *numbers, *gaps; /* gaps: first and last by turns */
	uint64_t rows;
	uint64_t good_end; /* where the last whole line ends */
	bool is_bad;       /* no whole line since good_end */
	bool has_header;
	char id[RECORD_ID_MAX + 1], meta_sha256[DIGEST_HEX_SIZE];
	struct str tail;   /* whole lines behind the last hash line */
	struct map *files; /* that the log names */
};

static void add_number(struct numbers *numbers, uint64_t seq)
{
	if (numbers->n == numbers->cap) {
		numbers->cap = numbers->cap ? numbers->cap * 2 : 1024;
		numbers->seqs = mem_grow(numbers->seqs, numbers->cap, sizeof(uint64_t));
	}
	numbers->seqs[numbers->n++] = seq;
}

static void on_hash(struct scan *scan, struct slice line)
{
	struct record_journal *journal = scan->journal;
	const struct control_line *control = &scan->control;

	memcpy(journal->head, control->hash, DIGEST_HEX_SIZE);
	journal->batches = control->batch;
	journal->events = journal->closed_events = control->events;
	journal->seq = journal->closed_seq = control->seq;
	journal->n = 0;
	str_reset(&journal->sums);
	str_reset(&scan->tail);
	str_reset(&journal->hash_line);
	str_add(&journal->hash_line, line.p, line.len);
	str_putc(&journal->hash_line, '\n');
}

static void on_tail_line(struct scan *scan, struct slice line, uint64_t seq)
{
	struct record_journal *journal = scan->journal;
	char sum[9];

	record_journal_line_sum(line, sum);
	str_add(&journal->sums, sum, 8);
	str_add(&scan->tail, line.p, line.len);
	str_putc(&scan->tail, '\n');
	journal->n++;
	if (seq == 0)
		return;
	journal->seq = seq;
	journal->events++;
}

/* 0 for a whole line. */
static int scan_line(struct scan *scan, struct slice line)
{
	uint64_t seq = 0;

	switch (control_line_read(line, &scan->control)) {
	case CONTROL_LINE_HASH:
		on_hash(scan, line);
		scan->is_bad = false;
		return 0;
	case CONTROL_LINE_EVENT:
		if (line.p[line.len - 1] != '}' || control_line_seq(line, &seq) < 0)
			return -EBADMSG;
		add_number(scan->numbers, seq);
		scan->rows += memmem(line.p, line.len, EXEC_END, sizeof(EXEC_END) - 1) != NULL;
		break;
	case CONTROL_LINE_GAP:
		if (scan->gaps->n >= 2 * GAPS_MAX)
			break;
		add_number(scan->gaps, scan->control.first);
		add_number(scan->gaps, scan->control.last);
		break;
	case CONTROL_LINE_HEADER:
		scan->has_header = true;
		memcpy(scan->id, scan->control.sandbox, sizeof(scan->id));
		memcpy(scan->meta_sha256, scan->control.hash, sizeof(scan->meta_sha256));
		break;
	case CONTROL_LINE_FILE:
		*map_slot(scan->files, slice_of(scan->control.name)) = scan;
		break;
	case CONTROL_LINE_BAD:
		return -EBADMSG;
	}
	if (!scan->is_bad)
		on_tail_line(scan, line, seq);
	return 0;
}

static int scan_file(struct scan *scan, const char *name)
{
	struct lines lines;
	struct slice line;
	int r = lines_open(&lines, scan->journal->dirfd, name);

	if (r < 0)
		return r;
	while ((r = lines_next(&lines, &line)) > 0) {
		if (lines.is_long || line.len == 0 || scan_line(scan, line) < 0)
			scan->is_bad = true;
		if (!scan->is_bad)
			scan->good_end = lines_next_offset(&lines);
	}
	lines_done(&lines);
	return r;
}

/* Copies the torn end beside, then cuts it off. */
static int cut_file(struct record *record, struct record_journal *journal, uint64_t good_end)
{
	scoped_str struct str torn = {0};
	scoped_fd int fd = -1;
	struct stat st;
	ssize_t n;
	int r;

	if (fstat(journal->fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size <= good_end)
		return 0;
	record->mend.torn_bytes += (uint64_t)st.st_size - good_end;
	str_reserve(&torn, TORN_MAX);
	n = pread(journal->fd, torn.p, TORN_MAX, (off_t)good_end);
	if (n < 0)
		return -errno;
	fd = record_internal_create(record->dirfd, TORN_NAME, O_APPEND, record->uid, record->gid);
	if (fd == -EEXIST)
		fd = record_internal_open(record->dirfd, TORN_NAME, O_WRONLY | O_APPEND, NULL);
	r = fd < 0 ? fd : fdio_write_all(fd, torn.p, (size_t)n);
	if (r < 0 && r != -ENOSPC && r != -EDQUOT) /* no room to keep it is no reason not to mend */
		return r;
	return ftruncate(journal->fd, (off_t)good_end) < 0 ? -errno : 0;
}

static int take_over(struct record *record, struct scan *scan)
{
	struct record_journal *journal = scan->journal;
	int r = cut_file(record, journal, scan->good_end);

	if (r < 0)
		return r;
	journal->file_bytes = scan->good_end;
	str_add(&journal->hash_line, scan->tail.p,
		scan->tail.len); /* both stand before what comes */
	return 0;
}

static int recover_log(struct record *record, struct scan *scan)
{
	struct record_journal *log = &record->log;
	int r;

	scan->journal = log;
	r = scan_file(scan, "log.jsonl");
	if (r < 0)
		return r;
	if (!scan->has_header || !record_internal_is_name(scan->id))
		return -EBADMSG;
	memcpy(record->id, scan->id, sizeof(record->id));
	memcpy(record->meta_sha256, scan->meta_sha256, sizeof(record->meta_sha256));
	record->rows = scan->rows;
	return take_over(record, scan);
}

static unsigned last_segment(const struct record *record)
{
	char name[RECORD_JOURNAL_NAME_SIZE];
	unsigned n = 0;
	struct stat st;

	for (; n < RECORD_JOURNAL_N_SEGMENTS; n++) {
		record_journal_file_name("trace", n + 1, name);
		if (fstatat(record->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			break;
	}
	return n;
}

static int scan_segment(struct record *record, struct scan *scan, unsigned segment)
{
	char name[RECORD_JOURNAL_NAME_SIZE];
	int r;

	record->trace.segment = segment;
	record_journal_file_name("trace", segment, name);
	r = scan_file(scan, name);
	if (r < 0)
		return r;
	record->trace.fd = record_internal_open(record->dirfd, name, O_RDWR | O_APPEND, NULL);
	return record->trace.fd < 0 ? record->trace.fd : 0;
}

/* A last segment without a whole header holds nothing: it goes, the one before is the last then. */
static int recover_trace(struct record *record, struct scan *scan)
{
	unsigned segment = last_segment(record);
	char name[RECORD_JOURNAL_NAME_SIZE];
	int r;

	scan->journal = &record->trace;
	for (; segment > 0; segment--) {
		r = scan_segment(record, scan, segment);
		if (r < 0)
			return r;
		if (scan->has_header)
			return take_over(record, scan);
		r = cut_file(record, &record->trace, 0);
		record_journal_file_name("trace", segment, name);
		if (r < 0 || unlinkat(record->dirfd, name, 0) < 0)
			return r < 0 ? r : -errno;
		scoped_close(&record->trace.fd);
		record->trace.fd = -1;
		scan->is_bad = false;
	}
	record->trace.segment = 1;
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void add_gap(struct record *record, uint64_t first, uint64_t last)
{
	struct str *out = record_journal_line_begin(&record->log);

	str_printf(out, "{\"gap\":{\"first\":%" PRIu64 ",\"last\":%" PRIu64 "}}", first, last);
	(void)record_journal_line_end(&record->log, 0); /* nobody follows these lines */
	record->mend.lost += last - first + 1;
}

/* Numbers from first on that neither journal holds and no gap line tells of. */
static void enter_gaps(
	struct record *record, struct numbers *numbers, const struct numbers *gaps, uint64_t first)
{
	uint64_t next = first;
	unsigned n = 0;

	for (size_t i = 0; i < gaps->n; i += 2)
		if (gaps->seqs[i + 1] - gaps->seqs[i] < CONTROL_LINE_SEQ_MAX)
			add_number(numbers, gaps->seqs[i]);
	if (numbers->n)
		qsort(numbers->seqs, numbers->n, sizeof(uint64_t), compare);
	for (size_t i = 0; i < numbers->n; i++) {
		uint64_t seq = numbers->seqs[i];

		if (seq < next)
			continue;
		if (seq > next && n++ < GAPS_MAX)
			add_gap(record, next, seq - 1);
		next = seq + 1;
		for (size_t g = 0; g < gaps->n; g += 2)
			if (gaps->seqs[g] == seq && gaps->seqs[g + 1] >= next)
				next = gaps->seqs[g + 1] + 1;
	}
}

struct leftovers {
	struct record *record;
	const struct map *named;
};

static void on_path(void *ctx, const char *path)
{
	struct leftovers *leftovers = ctx;
	scoped_fd int fd = -1;
	struct digest digest;
	uint64_t bytes;

	if (map_find(leftovers->named, slice_of(path)))
		return;
	if (strcmp(path, RECORD_CHANGES_NAME RECORD_FILES_PART) == 0) {
		record_files_drop_part(leftovers->record->dirfd, path);
		return;
	}
	fd = record_files_open(leftovers->record->dirfd, path);
	if (fd >= 0 && record_files_hash(fd, &digest, &bytes) == 0)
		record_files_enter(leftovers->record, path, &digest, bytes);
}

/* Files that the writer had not finished stand for what they hold now. */
static int enter_files(struct record *record, const struct map *named)
{
	struct leftovers leftovers = {.record = record, .named = named};

	return record_files_walk(record->dirfd, on_path, &leftovers);
}

static int lock_log(struct record *record)
{
	struct stat st;
	int fd = record_internal_open(record->dirfd, "log.jsonl", O_RDWR | O_APPEND, &st);

	if (fd < 0)
		return fd;
	record->log.fd = fd;
	record->uid = record->log.uid = record->trace.uid = st.st_uid;
	record->gid = record->log.gid = record->trace.gid = st.st_gid;
	return record_internal_lock(fd);
}

static int recover_all(struct record *record, struct numbers *numbers, struct numbers *gaps)
{
	scoped(map) struct map *named = map_new();
	struct scan log = {.numbers = numbers, .gaps = gaps, .files = named};
	struct scan trace = {.numbers = numbers, .gaps = gaps, .files = named};
	uint64_t first = 1;
	size_t n_log;
	int r = recover_log(record, &log);

	n_log = numbers->n;
	if (r == 0)
		r = recover_trace(record, &trace);
	if (r == 0 && record->trace.segment > 1)
		first = numbers->n > n_log ? numbers->seqs[n_log] : UINT64_MAX;
	if (r == 0)
		enter_gaps(record, numbers, gaps, first);
	if (r == 0)
		r = enter_files(record, named);
	if (numbers->n > 0)
		record->seq = numbers->seqs[numbers->n - 1];
	if (record->trace.seq > record->seq)
		record->seq = record->trace.seq;
	control_line_done(&log.control);
	control_line_done(&trace.control);
	str_done(&log.tail);
	str_done(&trace.tail);
	return r;
}

int recover_record(struct record *record, struct err *err)
{
	struct numbers numbers = {0}, gaps = {0};
	int r;

	record_internal_init(record);
	r = lock_log(record);
	if (r == -EBUSY)
		return err_set(err, r, "its writer still lives");
	if (r < 0)
		return err_set(err, r, "log.jsonl: %m");
	r = recover_all(record, &numbers, &gaps);
	free(numbers.seqs);
	free(gaps.seqs);
	if (r == -EBADMSG)
		return err_set(err, r, "log.jsonl has no header: there is nothing to go on from");
	return r < 0 ? err_set(err, r, "mend its journals: %m") : 0;
}
