/* SPDX-License-Identifier: Apache-2.0 */
#include "server/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int page_begin(struct page *page, struct call *call, bool is_number, struct err *err)
{
	const char *cursor = call_query(call, "cursor");
	int r;

	*page = (struct page){
		.call = call, .j = jsonw_to(&call->out), .after = cursor ? cursor : ""};
	r = call_query_int(call, "limit", 1, STORE_PAGE_MAX, PAGE_DEFAULT, &page->limit, err);
	if (r == 0 && is_number)
		r = call_query_int(call, "cursor", 0, INT64_MAX, 0, &page->cursor, err);
	if (r < 0)
		return r;
	jsonw_object(&page->j);
	jsonw_key(&page->j, "items");
	jsonw_array(&page->j);
	return 0;
}

void page_add_named(struct page *page, struct slice json, const char *cursor)
{
	jsonw_raw(&page->j, json);
	snprintf(page->last, sizeof(page->last), "%s", cursor);
	page->n++;
}

void page_add(struct page *page, struct slice json, int64_t cursor)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)cursor);
	page_add_named(page, json, text);
}

void page_end(struct page *page)
{
	jsonw_array_end(&page->j);
	jsonw_ktext(&page->j, "next_cursor", page->n == page->limit ? page->last : NULL);
	jsonw_object_end(&page->j);
}
