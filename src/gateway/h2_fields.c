/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/h2_fields.h"

#include <errno.h>
#include <stdlib.h>

#include "util/mem.h"

#define FIELD_COST 32 /* of each field on top of its bytes, as RFC 9113, 10.5.1 counts */

void h2_fields_done(struct h2_fields *fields)
{
	str_done(&fields->text);
	free(fields->items);
	free(fields->views);
	free(fields->secret);
	*fields = (struct h2_fields){0};
}

int h2_fields_add(struct h2_fields *fields, struct slice name, struct slice value, bool secret)
{
	struct str *text = &fields->text;
	size_t cost = text->len + name.len + value.len + (fields->n + 1) * FIELD_COST;

	if (fields->n >= HTTP1_MAX_FIELDS || cost > HTTP1_MAX_HEAD)
		return -EMSGSIZE;
	fields->items = mem_grow(fields->items, fields->n + 1, sizeof(*fields->items));
	fields->items[fields->n] = (struct h2_field){.name = text->len,
		.name_len = name.len,
		.value = text->len + name.len + 1,
		.value_len = value.len,
		.secret = secret};
	fields->n++;
	str_add(text, name.p, name.len);
	str_putc(text, '\0');
	str_add(text, value.p, value.len);
	str_putc(text, '\0');
	return 0;
}

static struct slice name_of(const struct h2_fields *fields, size_t i)
{
	return (struct slice){
		.p = fields->text.p + fields->items[i].name, .len = fields->items[i].name_len};
}

static struct slice value_of(const struct h2_fields *fields, size_t i)
{
	return (struct slice){
		.p = fields->text.p + fields->items[i].value, .len = fields->items[i].value_len};
}

void h2_fields_view(struct h2_fields *fields)
{
	fields->views = new0_n(struct http1_field, fields->n + 1);
	fields->secret = new0_n(bool, fields->n + 1);
	for (size_t i = 0; i < fields->n; i++) {
		if (slice_starts(name_of(fields, i), ":"))
			continue;
		fields->secret[fields->n_views] = fields->items[i].secret;
		fields->views[fields->n_views++] = (struct http1_field){
			.name = name_of(fields, i), .value = value_of(fields, i)};
	}
}

struct slice h2_fields_pseudo(const struct h2_fields *fields, const char *name)
{
	for (size_t i = 0; i < fields->n; i++)
		if (slice_is(name_of(fields, i), name))
			return value_of(fields, i);
	return (struct slice){0};
}

void h2_block_init(struct h2_block *block, size_t room)
{
	*block = (struct h2_block){.items = new0_n(nghttp2_nv, room), .at = new0_n(size_t, room)};
}

void h2_block_done(struct h2_block *block)
{
	free(block->items);
	free(block->at);
	str_done(&block->texts);
}

void h2_block_add(struct h2_block *block, struct slice name, struct slice value, bool secret)
{
	/* nghttp2 copies; its type only lacks the const. */
	block->items[block->n] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.p,
		.namelen = name.len,
		.value = (uint8_t *)(uintptr_t)(value.p ? value.p : ""),
		.valuelen = value.len,
		.flags = secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE};
	block->at[block->n++] = SIZE_MAX;
}

/* Fields whose values are secret by what they are for: no table of a connection should hold them. */
static bool is_credential(struct slice name)
{
	static const char *const names[] = {"authorization", "proxy-authorization", "cookie",
		"set-cookie", "x-api-key", "api-key", "x-goog-api-key", "x-auth-token"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_is(name, names[i]))
			return true;
	return false;
}

static void add_changed(struct h2_block *block, struct slice name, size_t at, bool secret)
{
	h2_block_add(block, name, (struct slice){.p = "", .len = block->texts.len - at}, secret);
	block->at[block->n - 1] = at;
}

static void add_put(
	struct h2_block *block, const struct http1_field *f, bool secret, struct http_turn *turn)
{
	size_t at = block->texts.len;

	http_turn_put_field(turn, f->name, f->value, &block->texts);
	secret = secret || block->texts.len - at != f->value.len ||
	         memcmp(block->texts.p + at, f->value.p, f->value.len) != 0;
	add_changed(block, f->name, at, secret);
}

void h2_block_add_fields(
	struct h2_block *block, const struct h2_fields *fields, struct http_turn *turn)
{
	for (size_t i = 0; i < fields->n_views; i++) {
		const struct http1_field *f = &fields->views[i];
		bool secret = fields->secret[i] || is_credential(f->name);

		if (turn && slice_is(f->name, "host"))
			continue;
		if (turn && http_turn_has_secrets(turn))
			add_put(block, f, secret, turn);
		else
			h2_block_add(block, f->name, f->value, secret);
	}
}

void h2_block_add_path(struct h2_block *block, struct http_turn *turn)
{
	size_t at = block->texts.len;
	uint64_t used = turn->used;

	http_turn_put_path(turn, &block->texts);
	add_changed(block, slice_of(":path"), at, turn->used != used);
}

const nghttp2_nv *h2_block_items(struct h2_block *block)
{
	for (size_t i = 0; i < block->n; i++)
		if (block->at[i] != SIZE_MAX)
			block->items[i].value = (uint8_t *)block->texts.p + block->at[i];
	return block->items;
}
