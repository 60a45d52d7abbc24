/* SPDX-License-Identifier: Apache-2.0 */
/* A block of HTTP/2 fields: gathered as they are read, then looked at, then written to the other side. */
#ifndef GATEWAY_H2_FIELDS_H
#define GATEWAY_H2_FIELDS_H

#include <nghttp2/nghttp2.h>

#include "gateway/http_turn.h"
#include "util/str.h"

struct h2_field {
	size_t name, name_len, value, value_len; /* places in the text */
	bool secret;                             /* the sender said that no table is to hold it */
};

struct h2_fields {
	struct str text;
	struct h2_field *items;
	size_t n;
	struct http1_field
		*views; /* those without a colon in front, once h2_fields_view() was called */
	bool *secret;   /* of each of them */
	size_t n_views;
};

void h2_fields_done(struct h2_fields *fields);
/* -EMSGSIZE over the bounds of a head (http1.h). */
int h2_fields_add(struct h2_fields *fields, struct slice name, struct slice value, bool secret);
/* Makes views; no field is added from then on. */
void h2_fields_view(struct h2_fields *fields);
/* A pseudo field, by its name with the colon; p is NULL where there is none. */
struct slice h2_fields_pseudo(const struct h2_fields *fields, const char *name);

/* What is written to the other side: borrowed slices and, where values are put in, texts of its own. */
struct h2_block {
	nghttp2_nv *items;
	size_t n;
	struct str texts; /* of what was changed */
	size_t *at;       /* its place in texts, of each item; SIZE_MAX: not changed */
};

void h2_block_init(struct h2_block *block, size_t room);
void h2_block_done(struct h2_block *block);
void h2_block_add(struct h2_block *block, struct slice name, struct slice value, bool secret);
/* All views, with values put in for the request of a turn; host is left out. turn NULL: as they are. */
void h2_block_add_fields(
	struct h2_block *block, const struct h2_fields *fields, struct http_turn *turn);
/* The same for the path. */
void h2_block_add_path(struct h2_block *block, struct http_turn *turn);
/* Nothing is added any more: items can be handed over. */
const nghttp2_nv *h2_block_items(struct h2_block *block);

#endif
