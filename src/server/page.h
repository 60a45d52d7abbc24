/* SPDX-License-Identifier: Apache-2.0 */
/* Lists: {"items": [...], "next_cursor": TEXT or null}. A cursor is where the last page ended; it is good for ever. */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H

#include "server/call.h"
#include "util/jsonw.h"

#define PAGE_DEFAULT 100

struct page {
	struct call *call;
	struct jsonw j;
	int64_t limit;
	int64_t cursor;    /* of the query; 0: from the start */
	const char *after; /* the same as text, "" where there is none */
	int64_t n;         /* items so far */
	char last[64];     /* cursor behind the last item */
};

/* Reads limit and cursor. is_number: the cursor is a number. */
int page_begin(struct page *page, struct call *call, bool is_number, struct err *err);
/* Items: JSON of our own, and the cursor behind it. */
void page_add(struct page *page, struct slice json, int64_t cursor);
void page_add_named(struct page *page, struct slice json, const char *cursor);
/* Of n items as many as the limit: there may be more. */
void page_end(struct page *page);

#endif
