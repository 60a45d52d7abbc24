/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record_blob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/mem.h"

#define NEW_NAME "new" /* being written */

static bool is_hash(struct slice name)
{
	return name.len == DIGEST_HEX_LEN && strspn(name.p, "0123456789abcdef") >= name.len;
}

static int open_folder(int dirfd)
{
	int fd = openat(dirfd, RECORD_BLOB_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int record_blob_open(int dirfd, struct slice sha256)
{
	char name[DIGEST_HEX_SIZE] = "";
	scoped_fd int folder = -1;

	if (!is_hash(sha256))
		return -EINVAL;
	memcpy(name, sha256.p, DIGEST_HEX_LEN);
	folder = open_folder(dirfd);
	return folder < 0 ? folder : record_internal_open(folder, name, O_RDONLY, NULL);
}

static int make_folder(struct record *record)
{
	struct record_blobs *blobs = &record->blobs;
	int r;

	if (blobs->fd >= 0)
		return 0;
	r = record_internal_folder(record->dirfd, RECORD_BLOB_FOLDER, record->uid, record->gid);
	if (r == 0)
		r = open_folder(record->dirfd);
	if (r < 0)
		return r;
	blobs->fd = r;
	blobs->pairs = new0_n(struct record_blob_pair, RECORD_BLOB_PAIRS);
	return 0;
}

/* Under another name, which a write that failed may have left. */
static int create(struct record *record)
{
	int fd = record_internal_create(record->blobs.fd, NEW_NAME, 0, record->uid, record->gid);

	if (fd != -EEXIST)
		return fd;
	(void)unlinkat(record->blobs.fd, NEW_NAME, 0); /* the next line says what is wrong */
	return record_internal_create(record->blobs.fd, NEW_NAME, 0, record->uid, record->gid);
}

/* Whoever finds it under its own name finds all of it. */
static int write_new(struct record *record, struct slice bytes, const char *name)
{
	int folder = record->blobs.fd, r;
	scoped_fd int fd = create(record);

	if (fd < 0)
		return fd;
	r = fdio_write_all(fd, bytes.p, bytes.len);
	if (r == 0 && record->is_durable && fdatasync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(folder, NEW_NAME, folder, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(folder, NEW_NAME, 0); /* the reason it failed is the one to tell */
	return r;
}

static int keep(struct record *record, struct slice bytes, char ret_sha256[DIGEST_HEX_SIZE])
{
	struct record_blobs *blobs = &record->blobs;
	int r;

	digest_of(bytes.p, bytes.len, ret_sha256);
	if (faccessat(blobs->fd, ret_sha256, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	/* An earlier writer may have kept more than this one may. */
	if (blobs->files >= RECORD_BLOB_FILES_MAX || blobs->bytes > blobs->max ||
		bytes.len > blobs->max - blobs->bytes)
		return -EDQUOT;
	r = write_new(record, bytes, ret_sha256);
	if (r < 0)
		return r;
	blobs->files++;
	blobs->bytes += bytes.len;
	return 0;
}

static void remember(struct record_blobs *blobs, const char *named, const char *kept)
{
	struct record_blob_pair *pair = &blobs->pairs[blobs->next++ % RECORD_BLOB_PAIRS];

	memcpy(pair->named, named, DIGEST_HEX_SIZE);
	memcpy(pair->kept, kept, DIGEST_HEX_SIZE);
}

static bool redact_part(const struct record *record, struct slice bytes, enum record_blob_part part,
	struct str *out)
{
	if (!record->redact)
		return false;
	return part == RECORD_BLOB_WHOLE
	               ? redact_text(record->redact, bytes, out)
	               : redact_text_cut(record->redact, bytes, part == RECORD_BLOB_TAIL, out);
}

int record_blob_put(struct record *record, struct slice bytes, enum record_blob_part part,
	char ret_sha256[DIGEST_HEX_SIZE])
{
	scoped_str struct str without = {0};
	char named[DIGEST_HEX_SIZE], kept[DIGEST_HEX_SIZE];
	bool is_redacted;
	int r;

	if (record->failed || record->is_closing)
		return record->failed ? record->failed : -ENOSPC;
	is_redacted = redact_part(record, bytes, part, &without);
	r = make_folder(record);
	if (r == 0)
		r = keep(record, is_redacted ? str_slice(&without) : bytes, kept);
	if (r < 0)
		return r;
	memcpy(named, kept, sizeof(named));
	if (is_redacted)
		digest_of(bytes.p, bytes.len, named);
	remember(&record->blobs, named, kept);
	memcpy(ret_sha256, kept, DIGEST_HEX_SIZE);
	return 0;
}

void record_blob_count(struct record *record)
{
	int fd = open_folder(record->dirfd);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	struct stat st;

	if (!dir) {
		scoped_close(&fd); /* there are none */
		return;
	}
	while ((e = readdir(dir))) {
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		record->blobs.files++;
		record->blobs.bytes += (uint64_t)st.st_size;
	}
	(void)closedir(dir);
}

void record_blob_done(struct record_blobs *blobs)
{
	scoped_close(&blobs->fd);
	free(blobs->pairs);
}

const struct record_blob_field record_blob_fields[RECORD_BLOB_FIELDS] = {
	{EVENT_F_body_blob, EVENT_F_body_truncated},
	{EVENT_F_body_tail_blob, EVENT_F_body_truncated},
	{EVENT_F_response_body_blob, EVENT_F_response_body_truncated},
	{EVENT_F_response_body_tail_blob, EVENT_F_response_body_truncated},
};

bool record_blob_is_named(const struct event *ev)
{
	return event_has(ev, body_blob) || event_has(ev, body_tail_blob) ||
	       event_has(ev, response_body_blob) || event_has(ev, response_body_tail_blob);
}

/* Under which name it is kept; NULL: it is not. Mostly one of the last. */
static const char *find_kept(const struct record_blobs *blobs, struct slice named)
{
	for (size_t i = 1; blobs->pairs && i <= RECORD_BLOB_PAIRS && i <= blobs->next; i++) {
		const struct record_blob_pair *pair =
			&blobs->pairs[(blobs->next - i) % RECORD_BLOB_PAIRS];

		if (slice_is(named, pair->named))
			return pair->kept;
	}
	return NULL;
}

static bool is_there(const struct record *record, struct slice named)
{
	scoped_fd int fd = record_blob_open(record->dirfd, named);

	return fd >= 0;
}

void record_blob_mend(const struct record *record, struct event *ev)
{
	for (size_t i = 0; i < RECORD_BLOB_FIELDS; i++) {
		const struct record_blob_field *field = &record_blob_fields[i];
		struct slice *name =
			(struct slice *)((char *)ev + event_field_table[field->name].offset);
		const char *kept;

		if (!event_has_field(ev, field->name))
			continue;
		kept = find_kept(&record->blobs, *name);
		if (kept) {
			*name = slice_of(kept);
		} else if (!is_there(record, *name)) {
			event_drop_field(ev, field->name);
			*(event_bool *)((char *)ev + event_field_table[field->truncated].offset) =
				true;
			event_mark_field(ev, field->truncated);
		}
	}
}
