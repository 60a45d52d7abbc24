/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a JSON object into a struct by a table of keys. For src/spec only. */
#ifndef SPEC_SPEC_INTERNAL_H
#define SPEC_SPEC_INTERNAL_H

#include <jansson.h>

#include "spec/spec.h"
#include "util/jsonw.h"

struct spec_source {
	const char *name;
	unsigned bit;
};
extern const struct spec_source spec_parse_source_table[]; /* ends with a NULL name */

enum spec_json_kind {
	SPEC_JSON_TEXT,  /* char *, the struct's own; bytes under <name>_b64 win */
	SPEC_JSON_WORDS, /* struct spec_words, likewise */
	SPEC_JSON_SIZE,  /* int64_t from 0: a number, or text with a unit */
	SPEC_JSON_COUNT, /* int64_t from 0 */
	SPEC_JSON_U32,   /* uint32_t: ids */
	SPEC_JSON_U16,   /* unsigned short */
	SPEC_JSON_BOOL,
	SPEC_JSON_CALL,
};

struct spec_json_key {
	const char *name;
	enum spec_json_kind kind;
	size_t offset;
	int (*read)(void *target, const json_t *value, struct err *err); /* SPEC_JSON_CALL */
};

/* keys ends with a NULL name. A key that is not in the table is refused: what was asked for is never
 * passed over. null is the same as not there. */
int spec_json_read(
	void *target, const struct spec_json_key *keys, const json_t *object, struct err *err);
/* Members that are left out where there is nothing. */
void spec_json_write_given(struct jsonw *j, const char *key, const char *text);
void spec_json_write_words(struct jsonw *j, const char *key, const struct spec_words *words);
/* Parses the text of an object; the caller drops the reference. */
int spec_json_parse(struct slice json, json_t **ret_root, struct err *err);

/* As spec_network_read(). */
int spec_network_read_json(struct spec_network *net, const json_t *object, struct err *err);

static inline void spec_json_drop(json_t **root)
{
	json_decref(*root);
}
#define scoped_json __attribute__((cleanup(spec_json_drop)))

#endif
