/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record_seal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "record/record_internal.h"
#include "util/fdio.h"

#define SEAL_MAX 65536U

static bool get_hex(const json_t *json, const char *key, char ret[DIGEST_HEX_SIZE])
{
	const char *text = json_string_value(json_object_get(json, key));
	unsigned char value[DIGEST_LEN];

	if (!text || digest_from_hex(text, value) < 0)
		return false;
	digest_hex(value, ret);
	return true;
}

static bool fill(struct record_seal *seal)
{
	const json_t *json = seal->json;
	const char *id = json_string_value(json_object_get(json, "sandbox"));
	const char *end = json_string_value(json_object_get(json, "end"));
	json_int_t seq = json_integer_value(json_object_get(json, "seq"));
	json_int_t events = json_integer_value(json_object_get(json, "events"));

	seal->signature = json_string_value(json_object_get(json, "signature"));
	seal->key = json_string_value(json_object_get(json, "key"));
	seal->fingerprint = json_string_value(json_object_get(json, "fingerprint"));
	seal->named = json_string_value(json_object_get(json, "head"));
	if (!id || !end || !record_internal_is_name(id) || seq < 0 || events < 0)
		return false;
	memcpy(seal->id, id, strlen(id) + 1);
	seal->head.seq = (uint64_t)seq;
	seal->head.events = (uint64_t)events;
	return get_hex(json, "log", seal->head.log) && get_hex(json, "trace", seal->head.trace) &&
	       record_head_find_end(slice_of(end), &seal->head.end) == 0 && seal->signature &&
	       seal->key && seal->fingerprint && seal->named;
}

int record_seal_read(int dirfd, struct record_seal *ret_seal)
{
	scoped_fd int fd = record_internal_open(dirfd, "seal.json", O_RDONLY, NULL);
	struct record_seal seal = {0};
	scoped_str struct str text = {0};

	if (fd < 0)
		return fd == -ENOENT ? fd : -EBADMSG;
	if (fdio_read_all(fd, SEAL_MAX, &text) < 0)
		return -EBADMSG;
	seal.json = json_loadb(text.p ? text.p : "", text.len, JSON_REJECT_DUPLICATES, NULL);
	if (!seal.json || !fill(&seal)) {
		record_seal_done(&seal);
		return -EBADMSG;
	}
	record_head_seal(&seal.head, seal.id);
	*ret_seal = seal;
	return 0;
}

void record_seal_done(struct record_seal *seal)
{
	json_decref(seal->json);
	*seal = (struct record_seal){0};
}
