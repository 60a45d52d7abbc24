/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record_blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
	int r = record_internal_folder(record->dirfd, RECORD_BLOB_FOLDER, record->uid, record->gid);

	return r < 0 ? r : open_folder(record->dirfd);
}

/* Written under another name first: whoever finds it under its own finds all of it. */
static int write_new(struct record *record, int folder, struct slice bytes, const char *name)
{
	scoped_fd int fd = -1;
	int r;

	(void)unlinkat(folder, NEW_NAME, 0); /* left by a write that failed; mostly not there */
	fd = record_internal_create(folder, NEW_NAME, 0, record->uid, record->gid);
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
	scoped_fd int folder = make_folder(record);

	if (folder < 0)
		return folder;
	digest_of(bytes.p, bytes.len, ret_sha256);
	if (faccessat(folder, ret_sha256, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return write_new(record, folder, bytes, ret_sha256);
}

static void remember(struct record *record, const char *named, const char *kept)
{
	struct record_blob_pair *pair;

	if (!record->blobs)
		record->blobs = new0_n(struct record_blob_pair, RECORD_BLOB_PAIRS);
	pair = &record->blobs[record->next_blob++ % RECORD_BLOB_PAIRS];
	memcpy(pair->named, named, DIGEST_HEX_SIZE);
	memcpy(pair->kept, kept, DIGEST_HEX_SIZE);
}

int record_blob_put(
	struct record *record, const void *p, size_t len, char ret_sha256[DIGEST_HEX_SIZE])
{
	struct slice bytes = {.p = p, .len = len};
	scoped_str struct str without = {0};
	char named[DIGEST_HEX_SIZE], kept[DIGEST_HEX_SIZE];
	int r;

	if (record->failed || record->is_closing)
		return record->failed ? record->failed : -ENOSPC;
	if (!record->redact || !redact_text(record->redact, bytes, &without))
		return keep(record, bytes, ret_sha256);
	r = keep(record, str_slice(&without), kept);
	if (r < 0)
		return r;
	digest_of(p, len, named);
	remember(record, named, kept);
	memcpy(ret_sha256, kept, DIGEST_HEX_SIZE);
	return 0;
}

static const enum event_field fields[] = {EVENT_F_body_blob, EVENT_F_response_body_blob};

bool record_blob_is_named(const struct event *ev)
{
	return event_has(ev, body_blob) || event_has(ev, response_body_blob);
}

/* Under which name it is kept; NULL: it is not. */
static const char *find_kept(const struct record *record, struct slice named)
{
	for (size_t i = 0; record->blobs && i < RECORD_BLOB_PAIRS; i++)
		if (slice_is(named, record->blobs[i].named))
			return record->blobs[i].kept;
	return NULL;
}

static bool is_there(const struct record *record, struct slice named)
{
	scoped_fd int fd = record_blob_open(record->dirfd, named);

	return fd >= 0;
}

void record_blob_mend(const struct record *record, struct event *ev)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct slice *name =
			(struct slice *)((char *)ev + event_field_table[fields[i]].offset);
		const char *kept;

		if (!event_has_field(ev, fields[i]))
			continue;
		kept = find_kept(record, *name);
		if (kept)
			*name = slice_of(kept);
		else if (!is_there(record, *name))
			event_drop_field(ev, fields[i]);
	}
}
