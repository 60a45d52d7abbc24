/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record_journal.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/record_internal.h"
#include "util/fdio.h"
#include "util/scoped.h"

#define SUM_SEED  0xcbf29ce484222325ULL
#define SUM_PRIME 0x9e3779b97f4a7c15ULL

void record_journal_init(
	struct record_journal *journal, int dirfd, const char *name, const char *id)
{
	*journal = (struct record_journal){.dirfd = dirfd, .fd = -1, .name = name, .id = id};
	memset(journal->head, '0', DIGEST_HEX_LEN);
	journal->segment = strcmp(name, "log") == 0 ? 0 : 1;
}

void record_journal_done(struct record_journal *journal)
{
	scoped_close(&journal->fd);
	str_done(&journal->buf);
	str_done(&journal->hash_line);
	str_done(&journal->sums);
}

void record_journal_file_name(
	const char *name, unsigned segment, char ret[RECORD_JOURNAL_NAME_SIZE])
{
	if (segment)
		snprintf(ret, RECORD_JOURNAL_NAME_SIZE, "%s-%05u.jsonl", name, segment % 100000U);
	else
		snprintf(ret, RECORD_JOURNAL_NAME_SIZE, "%s.jsonl", name);
}

/* Eight bytes a step: a CRC over every line would cost as much as the hash chain. */
void record_journal_line_sum(struct slice line, char ret[9])
{
	static const char digit[] = "0123456789abcdef";
	uint64_t h = SUM_SEED ^ line.len;
	size_t i = 0;

	for (; i + 8 <= line.len; i += 8) {
		uint64_t word;

		memcpy(&word, line.p + i, 8);
		h = (h ^ le64toh(word)) * SUM_PRIME;
		h ^= h >> 32;
	}
	for (; i < line.len; i++)
		h = (h ^ (unsigned char)line.p[i]) * SUM_PRIME;
	h ^= h >> 32;
	for (int d = 0; d < 8; d++)
		ret[d] = digit[h >> (28 - 4 * d) & 15];
	ret[8] = '\0';
}

/* The first line of each file ties it to the record: to its meta.json, or to the file before it. */
static void add_header(struct record_journal *journal)
{
	struct str *out = &journal->buf;

	journal->line_at = out->len;
	str_printf(out, RECORD_JOURNAL_HEADER_START "%s\",\"v\":1,\"sandbox\":\"%s\"",
		journal->name, journal->id);
	if (journal->segment)
		str_printf(
			out, ",\"segment\":%u,\"prev\":\"%s\"}", journal->segment, journal->head);
	else
		str_printf(out, ",\"meta_sha256\":\"%s\"}", journal->meta_sha256);
	(void)record_journal_line_end(journal, 0); /* its place is of no interest */
}

struct str *record_journal_line_begin(struct record_journal *journal)
{
	if (journal->file_bytes == 0 && journal->hash_line.len == 0 && journal->n == 0)
		add_header(journal);
	journal->line_at = journal->buf.len;
	return &journal->buf;
}

struct slice record_journal_line_end(struct record_journal *journal, uint64_t seq)
{
	size_t at = journal->line_at;
	struct slice line = {.p = journal->buf.p + at, .len = journal->buf.len - at};
	char sum[9];

	record_journal_line_sum(line, sum);
	str_add(&journal->sums, sum, 8);
	str_putc(&journal->buf, '\n');
	journal->n++;
	if (seq) {
		journal->seq = seq;
		journal->events++;
	}
	return (struct slice){.p = journal->buf.p + at, .len = line.len};
}

void record_journal_line_drop(struct record_journal *journal)
{
	journal->buf.len = journal->line_at;
}

bool record_journal_is_batch_full(const struct record_journal *journal)
{
	return journal->buf.len - journal->batch_at >= RECORD_JOURNAL_BATCH_BYTES ||
	       journal->n >= RECORD_JOURNAL_BATCH_LINES;
}

void record_journal_hash_line(struct str *out, const struct record_journal_hash *hash)
{
	str_printf(out,
		RECORD_JOURNAL_HASH_START "%s\",\"batch\":%" PRIu64 ",\"n\":%" PRIu64
					  ",\"seq\":%" PRIu64 ",\"events\":%" PRIu64 ",\"sums\":\"",
		hash->head, hash->batch, hash->n, hash->seq, hash->events);
	str_add(out, hash->sums.p, hash->sums.len);
	str_puts(out, "\"}\n");
}

static void close_batch(struct record_journal *journal)
{
	struct str *line = &journal->hash_line;
	struct digest d;

	if (journal->n == 0)
		return;
	digest_init(&d);
	digest_add(&d, line->p, line->len);
	if (journal->buf.len > journal->batch_at)
		digest_add(&d, journal->buf.p + journal->batch_at,
			journal->buf.len - journal->batch_at);
	digest_value_hex(&d, journal->head);
	str_reset(line);
	record_journal_hash_line(line, &(struct record_journal_hash){.head = journal->head,
					       .batch = ++journal->batches,
					       .n = journal->n,
					       .seq = journal->seq,
					       .events = journal->events,
					       .sums = str_slice(&journal->sums)});
	str_add(&journal->buf, line->p, line->len);
	str_reset(&journal->sums);
	journal->batch_at = journal->buf.len;
	journal->n = 0;
	journal->closed_events = journal->events;
	journal->closed_seq = journal->seq;
}

static int open_file(struct record_journal *journal)
{
	char name[RECORD_JOURNAL_NAME_SIZE];

	if (journal->fd >= 0)
		return 0;
	record_journal_file_name(journal->name, journal->segment, name);
	journal->fd =
		record_internal_create(journal->dirfd, name, O_APPEND, journal->uid, journal->gid);
	if (journal->fd < 0)
		return journal->fd;
	journal->is_new = true;
	return 0;
}

/* To the disk; a new file with its name in the folder. */
static int sync_file(struct record_journal *journal)
{
	if (journal->fd < 0)
		return 0;
	if (fdatasync(journal->fd) < 0)
		return -errno;
	if (journal->is_new && fsync(journal->dirfd) < 0)
		return -errno;
	journal->is_new = false;
	return 0;
}

/* A full disk may take a part: that part leaves the buffer, the rest is tried again later. */
static int write_out(struct record_journal *journal)
{
	struct str *buf = &journal->buf;
	size_t done = 0;
	int r = 0;

	while (done < buf->len && r == 0) {
		ssize_t n = write(journal->fd, buf->p + done, buf->len - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			r = -errno;
	}
	journal->file_bytes += done;
	if (done < buf->len)
		memmove(buf->p, buf->p + done, buf->len - done);
	buf->len -= done;
	journal->batch_at = buf->len;
	return r;
}

/* The chain goes on in the next file by the "prev" of its header. */
static void next_segment(struct record_journal *journal)
{
	scoped_close(&journal->fd);
	journal->fd = -1;
	journal->segment++;
	journal->file_bytes = 0;
	str_reset(&journal->hash_line);
}

int record_journal_flush(struct record_journal *journal, bool sync)
{
	int r = 0;

	close_batch(journal);
	if (journal->buf.len > 0) {
		r = open_file(journal);
		if (r == 0)
			r = write_out(journal);
	}
	if (r == 0 && sync)
		r = sync_file(journal);
	if (r < 0)
		return r;
	if (journal->segment && journal->segment < RECORD_JOURNAL_N_SEGMENTS &&
		journal->file_bytes >= RECORD_JOURNAL_SEGMENT_MAX)
		next_segment(journal);
	return 0;
}
