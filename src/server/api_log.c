/* SPDX-License-Identifier: Apache-2.0 */
/* What was done: exec-log rows, lifecycle events, figures, the audit log; page by page from the store. */
#include <errno.h>
#include <string.h>

#include "server/api.h"
#include "server/page.h"
#include "util/clock.h"

#define Q_MAX 4000 /* bytes */

static int read_time(const struct call *call, const char *name, int64_t *ret_ms, struct err *err)
{
	const char *text = call_query(call, name);

	*ret_ms = 0;
	if (text && clock_parse(text, ret_ms) < 0)
		return err_set(err, -EINVAL,
			"parameter '%s': want a time, such as 2026-11-29T14:10:02Z", name);
	return 0;
}

static int read_order(const struct call *call, bool *ret_is_newest_first, struct err *err)
{
	const char *order = call_query(call, "order");

	*ret_is_newest_first = order && strcmp(order, "desc") == 0;
	if (order && !*ret_is_newest_first && strcmp(order, "asc") != 0)
		return err_set(err, -EINVAL, "parameter 'order': want asc or desc");
	return 0;
}

static int read_query(struct call *call, bool has_text, struct page *page,
	struct store_query *query, struct err *err)
{
	static const char *const with_text[] = {
		"limit", "cursor", "from", "to", "order", "q", "offset", NULL};
	static const char *const without[] = {"limit", "cursor", "from", "to", "order", NULL};
	int r = call_check_query(call, has_text ? with_text : without, err);

	if (r == 0)
		r = read_time(call, "from", &query->from_ms, err);
	if (r == 0)
		r = read_time(call, "to", &query->to_ms, err);
	if (r == 0)
		r = read_order(call, &query->is_newest_first, err);
	if (r == 0)
		r = page_begin(page, call, true, err);
	if (r == 0)
		r = call_query_int(call, "offset", 0, STORE_OFFSET_MAX, 0, &query->offset, err);
	if (r == 0 && call_query(call, "offset") && call_query(call, "cursor"))
		r = err_set(err, -EINVAL,
			"parameter 'offset': a cursor says already where the page begins");
	if (r < 0)
		return r;
	query->q = has_text ? call_query(call, "q") : NULL;
	if (query->q && strlen(query->q) > Q_MAX)
		return err_set(err, -EINVAL, "parameter 'q': want at most %d bytes", Q_MAX);
	query->account = call->caller.account;
	query->cursor = page->cursor;
	query->limit = (int)page->limit;
	return 0;
}

static int on_row(const struct store_log_row *row, void *arg)
{
	page_add(arg, slice_of(row->json), row->n);
	return 0;
}

static int answer_log(struct call *call, const char *sandbox, struct err *err)
{
	struct store_query query = {.sandbox = sandbox};
	struct page page = {0};
	int r = read_query(call, true, &page, &query, err);

	if (r == 0)
		r = store_log_page(call->server->store, &query, on_row, &page, err);
	if (r < 0)
		return r;
	page_end(&page);
	return 0;
}

int api_log_sandbox(struct call *call, struct err *err)
{
	const char *id = NULL;
	int r = api_sandbox_anywhere(call, &id, NULL, err);

	return r < 0 ? r : answer_log(call, id, err);
}

int api_log_account(struct call *call, struct err *err)
{
	return answer_log(call, NULL, err);
}

static int on_event(const struct store_event *event, void *arg)
{
	page_add(arg, slice_of(event->json), event->n);
	return 0;
}

int api_lifecycle(struct call *call, struct err *err)
{
	struct store_query query = {0};
	struct page page = {0};
	int r = api_sandbox_anywhere(call, &query.sandbox, NULL, err);

	if (r == 0)
		r = read_query(call, false, &page, &query, err);
	if (r == 0)
		r = store_lifecycle_page(call->server->store, &query, on_event, &page, err);
	if (r < 0)
		return r;
	page_end(&page);
	return 0;
}

int api_audit(struct call *call, struct err *err)
{
	struct store_query query = {0};
	struct page page = {0};
	int r = read_query(call, false, &page, &query, err);

	if (r == 0)
		r = store_audit_page(call->server->store, &query, on_event, &page, err);
	if (r < 0)
		return r;
	page_end(&page);
	return 0;
}

static int on_metric(const struct store_metric *metric, void *arg)
{
	page_add(arg, slice_of(metric->json), metric->at_ms);
	return 0;
}

int api_metrics(struct call *call, struct err *err)
{
	static const char *const names[] = {"limit", "cursor", "from", "to", NULL};
	struct store_metric_query query = {.account = call->caller.account};
	struct page page = {0};
	int64_t from_ms = 0;
	int r = api_sandbox_anywhere(call, &query.sandbox, NULL, err);

	if (r == 0)
		r = call_check_query(call, names, err);
	if (r == 0)
		r = read_time(call, "from", &from_ms, err);
	if (r == 0)
		r = read_time(call, "to", &query.to_ms, err);
	if (r == 0)
		r = page_begin(&page, call, true, err);
	if (r < 0)
		return r;
	query.after_ms = page.cursor ? page.cursor : from_ms ? from_ms - 1 : 0;
	query.limit = (int)page.limit;
	r = store_metric_page(call->server->store, &query, on_metric, &page, err);
	if (r < 0)
		return r;
	page_end(&page);
	return 0;
}
