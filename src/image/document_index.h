/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several images is meant. For document.c only. */
#ifndef IMAGE_DOCUMENT_INDEX_H
#define IMAGE_DOCUMENT_INDEX_H

#include <jansson.h>

#include "image/document.h"

int document_index_read(
	const json_t *root, const struct document_wish *wish, struct str *out, struct err *err);
int document_index_read_docker(
	const json_t *root, const struct document_wish *wish, struct str *out, struct err *err);

/* What document.c has for it: the text of a JSON string, nothing for other values; a descriptor as digest and size. */
struct slice document_text(const json_t *v);
int document_put_descriptor(struct str *out, int type, const json_t *descriptor, struct err *err);

#endif
