/* SPDX-License-Identifier: Apache-2.0 */
#include "record/verify_blobs.h"

#include <errno.h>
#include <string.h>

#include "record/record_blob.h"
#include "record/record_files.h"

#define BLOBS_MAX 1000000U
#define KEY_END   "body_blob\":\"" /* of body_blob and response_body_blob */

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
	if (event_has(ev, body_blob))
		add(blobs, ev->body_blob);
	if (event_has(ev, response_body_blob))
		add(blobs, ev->response_body_blob);
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

void verify_blobs_check(
	const struct verify_blobs *blobs, int dirfd, struct verify_findings *findings)
{
	char sha256[DIGEST_HEX_SIZE];
	struct slice name;
	void *value;

	for (size_t i = 0; blobs->names && map_next(blobs->names, &i, &name, &value);) {
		int len = name.len > DIGEST_HEX_LEN ? DIGEST_HEX_LEN : (int)name.len;
		int r = hash_of(dirfd, name, sha256);

		if (r == -EINVAL && name.len != DIGEST_HEX_LEN)
			verify_chain_finding(findings, "an event names a body by no hash");
		else if (r == -ENOENT)
			verify_chain_finding(
				findings, RECORD_BLOB_FOLDER "/%.*s is missing", len, name.p);
		else if (r < 0)
			verify_chain_finding(findings,
				RECORD_BLOB_FOLDER "/%.*s cannot be read: %s", len, name.p,
				strerror(-r));
		else if (!slice_is(name, sha256))
			verify_chain_finding(
				findings, RECORD_BLOB_FOLDER "/%.*s was changed", len, name.p);
	}
}

void verify_blobs_done(struct verify_blobs *blobs)
{
	map_free(blobs->names);
	event_line_free(blobs->parsed);
}
