/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zstd.h>

#include "event/event_json.h"
#include "record/record_blob.h"
#include "record/record_files.h"
#include "record/recover.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define META_MAX         (1U << 20)
#define RESERVE_NAME     "reserve"
#define RESERVE_AFTER_NS CLOCK_NS_PER_S
#define LOW_DISK_BYTES   (4ULL << 30) /* more is not filled within that time */
#define SEAL_NAME        "seal.json"
#define SEAL_TMP         "seal.json.new"

/* When an event's line would be longer than readers take, each list and text is cut to this. */
#define CLIPPED_FIELD 65536

static int write_meta(struct record *record, struct slice meta)
{
	scoped_fd int fd =
		record_internal_create(record->dirfd, "meta.json", 0, record->uid, record->gid);

	if (fd < 0)
		return fd;
	digest_of(meta.p, meta.len, record->meta_sha256);
	return fdio_write_all(fd, meta.p, meta.len);
}

/* Blocks that are really there, so that giving them up makes room. Where the filesystem cannot promise
 * any, the record does without. Making and freeing them costs a short run 0.2 ms, so where the disk is far
 * from full that waits until the record is a second old. */
static int make_reserve(struct record *record)
{
	scoped_fd int fd =
		record_internal_create(record->dirfd, RESERVE_NAME, 0, record->uid, record->gid);

	if (fd < 0)
		return fd;
	record->has_reserve = true;
	if (fallocate(fd, 0, 0, RECORD_RESERVE_BYTES) < 0 && errno != EOPNOTSUPP)
		return -errno;
	return 0;
}

static bool is_disk_low(const struct record *record)
{
	struct statvfs st;

	return fstatvfs(record->dirfd, &st) < 0 ||
	       (uint64_t)st.f_bavail * st.f_frsize < LOW_DISK_BYTES;
}

/* Makes the folder's first files. The log's header is written at once: it takes the lock with it. */
static int fill_folder(struct record *record, struct slice meta)
{
	int r = write_meta(record, meta);

	if (r == 0 && is_disk_low(record))
		r = make_reserve(record);
	if (r < 0)
		return r;
	(void)record_journal_line_begin(&record->log); /* for the header it adds */
	r = record_journal_flush(&record->log, record->is_durable);
	return r < 0 ? r : record_internal_lock(record->log.fd);
}

static int open_folder(const struct record_config *config)
{
	scoped_fd int fd = -1;

	if (mkdir(config->dir, 0700) < 0)
		return -errno;
	fd = open(config->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return take_fd(&fd);
}

/* Only as far as record_create() came: so by name, and the folder only where nothing else is in it. */
static void remove_folder(int dirfd, const char *dir)
{
	static const char *const names[] = {"meta.json", RESERVE_NAME, "log.jsonl"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlinkat(dirfd, names[i], 0); /* may never have been made */
	(void)rmdir(dir);                           /* the error that led here is the one to tell */
}

/* Nothing is to be written when the record is freed: it was not made, or is another's. */
static void let_go(struct record *record)
{
	scoped_close(&record->dirfd);
	record->dirfd = -1;
}

int record_create(const struct record_config *config, struct record **ret_record, struct err *err)
{
	scoped(record) struct record *record = new0(struct record);
	int r;

	record->dirfd = record->log.fd = record->trace.fd = record->blobs.fd = -1;
	if (!record_internal_is_name(config->id))
		return err_set(err, -EINVAL, "'%s' is no id for a record", config->id);
	if (config->meta.len > META_MAX)
		return err_set(
			err, -EFBIG, "the description of record '%s' is too long", config->id);
	r = open_folder(config);
	if (r < 0)
		return err_set(err, r, "make record '%s': %m", config->dir);
	record->dirfd = r;
	memcpy(record->id, config->id, strlen(config->id));
	record->made_ns = clock_mono_ns();
	record->uid = config->owner_uid;
	record->gid = config->owner_gid;
	record->is_durable = config->durable;
	record_internal_init(record);
	record->blobs.max = config->blobs_max ? config->blobs_max : RECORD_BLOB_BYTES_MAX;
	if (!config->raw)
		record->redact = redact_new(record->id);
	r = fill_folder(record, config->meta);
	if (r == 0 && fchown(record->dirfd, record->uid, record->gid) < 0)
		r = -errno;
	if (r == 0 && record_internal_has_readers(record->uid, record->gid) &&
		fchmod(record->dirfd, 0750) < 0)
		r = -errno;
	if (r < 0) {
		remove_folder(record->dirfd, config->dir);
		let_go(record);
		return err_set(err, r, "make record '%s': %m", config->dir);
	}
	*ret_record = take(&record);
	return 0;
}

int record_reopen(const char *dir, struct record **ret_record, struct err *err)
{
	scoped(record) struct record *record = new0(struct record);
	int r;

	record->log.fd = record->trace.fd = record->blobs.fd = -1;
	record->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (record->dirfd < 0)
		return err_set(err, -errno, "open record '%s': %m", dir);
	r = recover_record(record, err);
	if (r < 0) {
		let_go(record);
		return err_wrap(err, r, "reopen record '%s'", dir);
	}
	record->redact = redact_new(record->id);
	record->has_reserve = true; /* that of the dead writer, if any */
	*ret_record = take(&record);
	return 0;
}

int record_resume(const struct record_config *config, struct record **ret_record, struct err *err)
{
	struct record *record = NULL;
	int r = record_reopen(config->dir, &record, err);

	if (!record)
		return r;
	record->made_ns = clock_mono_ns();
	(void)unlinkat(
		record->dirfd, RESERVE_NAME, 0); /* of a writer that died; mostly not there */
	record->has_reserve = false;
	record->is_durable = config->durable;
	record->blobs.max = config->blobs_max ? config->blobs_max : RECORD_BLOB_BYTES_MAX;
	record_blob_count(record);
	if (config->raw) {
		redact_free(record->redact);
		record->redact = NULL;
	}
	*ret_record = record;
	return 0;
}

static bool is_closing_kind(enum event_kind kind)
{
	return event_kind_is_log(kind) || kind == EVENT_TRACE_DROPPED || kind == EVENT_TRACE_BLIND;
}

static size_t pending(const struct record *record)
{
	return record->log.buf.len + record->trace.buf.len;
}

/* Whether one more event may be taken; full batches go out here, before the new line, since the last one
 * is still the caller's to look at. */
static int make_room(struct record *record, enum event_kind kind)
{
	if (record->failed)
		return record->failed;
	if (record->is_closing && !is_closing_kind(kind))
		return -ENOSPC;
	if (!record_journal_is_batch_full(&record->log) &&
		!record_journal_is_batch_full(&record->trace))
		return 0;
	return record_flush(record, false);
}

static void clip_list(struct event_list *list)
{
	size_t n = 0, bytes = 0;

	while (n < list->n && bytes + list->items[n].len <= CLIPPED_FIELD)
		bytes += list->items[n++].len + 1;
	list->n = n;
}

/* Cuts what makes a line too long; argv and bodies say so themselves, others lose only what nobody could print. */
static void clip_event(struct event *ev)
{
	for (int f = 0; f < EVENT_N_FIELDS; f++) {
		const struct event_field_info *info = &event_field_table[f];
		void *at = (char *)ev + info->offset;

		if (!event_has_field(ev, (enum event_field)f))
			continue;
		if (info->type == EVENT_TYPE_text && ((struct slice *)at)->len > CLIPPED_FIELD)
			((struct slice *)at)->len = CLIPPED_FIELD;
		else if (info->type == EVENT_TYPE_raw && ((struct slice *)at)->len > CLIPPED_FIELD)
			*(struct slice *)at = slice_of("null");
		else if (info->type == EVENT_TYPE_list)
			clip_list(at);
	}
	if (event_has(ev, argv))
		event_set(ev, argv_truncated, true);
	if (event_has(ev, body))
		event_set(ev, body_truncated, true);
	if (event_has(ev, response_body))
		event_set(ev, response_body_truncated, true);
}

static void write_line(
	struct record *record, struct record_journal *journal, const struct event *ev)
{
	struct slice id = slice_of(record->id);
	struct str *out = record_journal_line_begin(journal);
	struct event clipped;

	event_json_write(out, ev, id);
	if (out->len - journal->line_at < RECORD_JOURNAL_LINE_MAX)
		return;
	record_journal_line_drop(journal);
	clipped = *ev;
	clip_event(&clipped);
	event_json_write(out, &clipped, id);
}

/* An event that names blobs: by the names under which they are kept. */
static void write_naming(
	struct record *record, struct record_journal *journal, const struct event *ev)
{
	struct event mended = *ev;

	record_blob_mend(record, &mended);
	write_line(record, journal, &mended);
}

int record_emit(struct record *record, struct event *ev, struct slice *ret_line)
{
	struct record_journal *journal =
		event_kind_is_log(ev->kind) ? &record->log : &record->trace;
	const struct event *kept = ev;
	struct slice line;
	int r = make_room(record, ev->kind);

	if (r < 0)
		return r;
	ev->seq = ++record->seq;
	if (ev->wall_ms == 0)
		ev->wall_ms = clock_wall_ms();
	if (record->redact)
		kept = redact_event(record->redact, ev);
	if (record_blob_is_named(kept))
		write_naming(record, journal, kept);
	else
		write_line(record, journal, kept);
	line = record_journal_line_end(journal, ev->seq);
	if (ev->kind == EVENT_EXEC_END)
		record->rows++;
	if (ev->kind == EVENT_EXEC_END || ev->kind == EVENT_EXEC_START)
		record->wants_sync = record->is_durable;
	if (ret_line)
		*ret_line = line;
	return 0;
}

/* The trace first: what a reader sees of the log then never stands before a trace line it cannot see. */
static int flush_both(struct record *record, bool sync)
{
	int r = record_journal_flush(&record->trace, sync);

	return r < 0 ? r : record_journal_flush(&record->log, sync);
}

int record_flush(struct record *record, bool sync)
{
	if (record->failed)
		return record->failed;
	if (!record->has_reserve && clock_mono_ns() - record->made_ns > RESERVE_AFTER_NS)
		record->failed = make_reserve(record);
	if (record->failed == 0)
		record->failed = flush_both(record, sync || record->wants_sync);
	record->wants_sync = false;
	return record->failed;
}

void record_allow_text(struct record *record, struct slice text)
{
	if (record->redact)
		redact_allow(record->redact, text);
}

int record_release_reserve(struct record *record)
{
	record->is_closing = record->has_reserve = true;
	if (unlinkat(record->dirfd, RESERVE_NAME, 0) < 0 && errno != ENOENT)
		return -errno;
	record->failed = 0;
	return record_flush(record, false);
}

uint64_t record_next_seq(const struct record *record)
{
	return record->seq + 1;
}

uint64_t record_n_rows(const struct record *record)
{
	return record->rows;
}

struct record_mend record_get_mend(const struct record *record)
{
	return record->mend;
}

void record_get_head(struct record *record, enum record_end end, struct record_head *ret_head)
{
	const struct record_journal *log = &record->log, *trace = &record->trace;

	if (end != RECORD_OPEN)
		(void)record_flush(
			record, false); /* a failure stays, and record_free() tries again */
	*ret_head = (struct record_head){
		.end = end, .events = log->closed_events + trace->closed_events};
	ret_head->seq = log->closed_seq > trace->closed_seq ? log->closed_seq : trace->closed_seq;
	memcpy(ret_head->log, log->head, DIGEST_HEX_SIZE);
	memcpy(ret_head->trace, trace->head, DIGEST_HEX_SIZE);
	record_head_seal(ret_head, record->id);
}

/* Not fdio_replace(): its sync costs more than a whole short run, and a seal that a power cut takes is
 * made again by gc. */
static int replace_seal(struct record *record, struct slice text)
{
	scoped_fd int fd = -1;
	int r;

	(void)unlinkat(
		record->dirfd, SEAL_TMP, 0); /* left by a writer that died; mostly not there */
	fd = record_internal_create(record->dirfd, SEAL_TMP, 0, record->uid, record->gid);
	if (fd < 0)
		return fd;
	r = fdio_write_all(fd, text.p, text.len);
	if (r == 0 && record->is_durable && fdatasync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(record->dirfd, SEAL_TMP, record->dirfd, SEAL_NAME) < 0)
		r = -errno;
	return r;
}

/* Nobody waits for the disk, but what is sealed is on its way there: a power cut from here on costs moments. */
static void start_writeback(const struct record *record)
{
	const int fds[] = {record->log.fd, record->trace.fd};

	for (size_t i = 0; i < 2; i++)
		if (fds[i] >= 0)
			(void)sync_file_range(fds[i], 0, 0, SYNC_FILE_RANGE_WRITE);
}

int record_put_seal(struct record *record, const struct record_head *head,
	const char *signature_b64, const char *key_fingerprint, const char *key_b64)
{
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);

	jsonw_object(&j);
	jsonw_kint(&j, "v", 1);
	jsonw_ktext(&j, "sandbox", record->id);
	jsonw_ktext(&j, "end", record_head_end_name(head->end));
	jsonw_kint(&j, "seq", (int64_t)head->seq);
	jsonw_kint(&j, "events", (int64_t)head->events);
	jsonw_ktext(&j, "log", head->log);
	jsonw_ktext(&j, "trace", head->trace);
	jsonw_ktext(&j, "head", head->head);
	jsonw_ktext(&j, "signature", signature_b64);
	jsonw_ktext(&j, "key", key_b64);
	jsonw_ktext(&j, "fingerprint", key_fingerprint);
	jsonw_object_end(&j);
	str_putc(&text, '\n');
	if (head->end != RECORD_OPEN)
		start_writeback(record);
	return replace_seal(record, str_slice(&text));
}

void record_free(struct record *record)
{
	if (!record)
		return;
	if (record->dirfd >= 0) {
		if (record_flush(record, false) < 0 || pending(record) > 0)
			(void)record_release_reserve(record); /* nobody is left to tell */
		if (record->has_reserve)
			(void)unlinkat(
				record->dirfd, RESERVE_NAME, 0); /* may be given up already */
	}
	record_journal_done(&record->trace);
	record_journal_done(&record->log);
	redact_free(record->redact);
	ZSTD_freeCCtx(record->short_outputs);
	scoped_close(&record->dirfd);
	record_blob_done(&record->blobs);
	free(record);
}

int record_put_changes(struct record *record, struct slice json)
{
	return record_files_put(record, RECORD_CHANGES_NAME, json);
}
