/* SPDX-License-Identifier: Apache-2.0 */
#include "record/verify_blobs.h"

#include <errno.h>
#include <string.h>

#include "record/record_blob.h"
#include "record/record_files.h"

#define BLOBS_MAX 1000000U
#define KEY_END   "_blob\":\"" /* of all fields that name one */

static void add(struct verify_blobs *blobs, struct slice name)
{
	if (map_len(blobs->names) < BLOBS_MAX)
		*map_slot(blobs->names, name) = blobs;
}

void verify_blobs_take(struct verify_blobs *blobs, struct slice line)
{
	const struct event *ev;

	if (line.len == 0 || !memmem(line.p, line.len, KEY_END, sizeof(KEY_END) - 1) ||
		event_json_read(line, &blobs->parsed, NULL) < 0)
		return;
	ev = event_json_get(blobs->parsed);
	if (!blobs->names)
		blobs->names = map_new();
	for (size_t i = 0; i < RECORD_BLOB_FIELDS; i++) {
		enum event_field f = record_blob_fields[i].name;

		if (event_has_field(ev, f))
			add(blobs, *(const struct slice *)((const char *)ev +
							   event_field_table[f].offset));
	}
}

static int hash_of(int dirfd, struct slice name, char ret_sha256[DIGEST_HEX_SIZE])
{
	scoped_fd int fd = record_blob_open(dirfd, name);
	struct digest digest;
	uint64_t bytes;
	int r = fd < 0 ? fd : record_files_hash(fd, &digest, &bytes);

	if (r == 0)
		digest_value_hex(&digest, ret_sha256);
	return r;
}

static void tell(struct verify_findings *findings, struct slice name, int r)
{
	int len = name.len > DIGEST_HEX_LEN ? DIGEST_HEX_LEN : (int)name.len;

	if (r == -EINVAL && name.len != DIGEST_HEX_LEN)
		verify_chain_finding(findings, "an event names a body by no hash");
	else if (r == -ENOENT)
		verify_chain_finding(findings, RECORD_BLOB_FOLDER "/%.*s is missing", len, name.p);
	else if (r == -EBADMSG)
		verify_chain_finding(findings, RECORD_BLOB_FOLDER "/%.*s was changed", len, name.p);
	else
		verify_chain_finding(findings, RECORD_BLOB_FOLDER "/%.*s cannot be read: %s", len,
			name.p, strerror(-r));
}

/* Whether bodies may be missing, asked once. */
static bool may_miss(const struct verify_options *options, struct verify_result *result)
{
	int r = 1;

	if (!options->are_bodies_removed)
		return false;
	if (result->bodies_gone == 0)
		r = options->are_bodies_removed(options->ctx);
	if (result->bodies_gone == 0)
		result->bodies_removed = r > 0;
	return r != 0;
}

void verify_blobs_check(const struct verify_blobs *blobs, int dirfd,
	const struct verify_options *options, struct verify_findings *findings,
	struct verify_result *result)
{
	char sha256[DIGEST_HEX_SIZE];
	bool is_refused = false;
	struct slice name;
	void *value;

	for (size_t i = 0; blobs->names && map_next(blobs->names, &i, &name, &value);) {
		int r = hash_of(dirfd, name, sha256);

		if (r == 0 && !slice_is(name, sha256))
			r = -EBADMSG;
		if (r == -ENOENT && !is_refused)
			is_refused = !may_miss(options, result);
		if (r == -ENOENT && !is_refused)
			result->bodies_gone++;
		else if (r < 0)
			tell(findings, name, r);
	}
}

void verify_blobs_done(struct verify_blobs *blobs)
{
	map_free(blobs->names);
	event_line_free(blobs->parsed);
}
