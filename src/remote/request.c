/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/id.h"
#include "util/mem.h"

#define TRIES      5
#define WAIT_MAX_S 30
#define PAGE       1000

static json_t *read_json(const struct str *text)
{
	return json_loadb(text->p ? text->p : "", text->len,
		JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
}

void request_code(const struct transfer *transfer, char ret_code[32])
{
	json_t *problem = read_json(&transfer->body);
	const char *code = json_string_value(json_object_get(problem, "code"));

	snprintf(ret_code, 32, "%s", code ? code : "");
	json_decref(problem);
}

static int errno_of(long status)
{
	static const struct {
		long status;
		int r;
	} table[] = {{400, -EINVAL}, {401, -EACCES}, {403, -EPERM}, {404, -ENOENT}, {409, -EBUSY},
		{413, -E2BIG}, {422, -EINVAL}, {429, -EAGAIN}, {503, -EAGAIN}, {507, -ENOSPC}};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].status == status)
			return table[i].r;
	return -EIO;
}

static int no_access(const struct link *link, struct err *err)
{
	if (link->key)
		return err_set(err, -EACCES,
			"%s does not know this key, or it was revoked: `cloche keys list` shows "
			"an admin which there are",
			link->address.shown);
	return err_set(err, -EACCES,
		"%s wants a key: set CLOCHE_KEY, or name a file that holds it with --key-file (an "
		"admin makes one by `cloche keys create`)",
		link->address.shown);
}

int request_check(const struct link *link, const struct transfer *transfer, struct err *err)
{
	json_t *problem;
	const char *detail;
	int r = transfer_check(link, transfer, err);

	if (r < 0 || (transfer->status >= 200 && transfer->status < 300))
		return r;
	problem = read_json(&transfer->body);
	detail = json_string_value(json_object_get(problem, "detail"));
	r = errno_of(transfer->status);
	if (!json_object_get(problem, "code") || !detail)
		(void)err_set(err, -EIO,
			"the answer of %s (status %ld) is not a control plane's: check the URL",
			link->address.shown, transfer->status);
	else if (r == -EACCES)
		(void)no_access(link, err);
	else
		(void)err_set(err, r, "%s", detail);
	json_decref(problem);
	return r;
}

static bool is_get(const struct ask *ask)
{
	return !ask->method || strcmp(ask->method, "GET") == 0;
}

/* Whoever only reads may as well wait, and ask again where the connection was lost. */
static bool waits(const struct link *link, const struct ask *ask, const struct transfer *transfer,
	int n_tries)
{
	long wait_s = transfer_retry_after(transfer);
	bool is_lost = transfer_check(link, transfer, NULL) == -ECONNRESET;

	if (!(transfer->status == 429 || is_lost) || !is_get(ask) || n_tries >= TRIES)
		return false;
	wait_s = wait_s > WAIT_MAX_S ? WAIT_MAX_S : wait_s;
	(void)sleep(wait_s < 1 ? 1 : (unsigned)wait_s);
	return true;
}

int request_text(struct link *link, const struct ask *ask, struct str *ret_body, struct err *err)
{
	scoped(transfer) struct transfer *transfer = NULL;
	int n_tries = 0, r;

	do {
		transfer_free(transfer);
		transfer = transfer_start(link, ask);
		transfer_wait(link, transfer);
	} while (waits(link, ask, transfer, ++n_tries));
	r = request_check(link, transfer, err);
	if (r == 0) {
		*ret_body = transfer->body;
		transfer->body = (struct str){0};
	}
	return r;
}

int request_json(struct link *link, const struct ask *ask, json_t **ret, struct err *err)
{
	scoped_str struct str body = {0};
	int r = request_text(link, ask, &body, err);
	json_t *answer;

	if (r < 0)
		return r;
	answer = body.len ? read_json(&body) : NULL;
	if (body.len && !answer)
		return err_set(err, -EIO,
			"the answer of %s is no JSON: is it a control plane? Check the URL",
			link->address.shown);
	if (ret)
		*ret = answer;
	else
		json_decref(answer);
	return 0;
}

/* The next page's cursor goes to *cursor, which is empty at the end. */
static int take_page(json_t *page, int (*on_item)(void *ctx, json_t *item, struct err *err),
	void *ctx, struct str *cursor, struct err *err)
{
	const char *next = json_string_value(json_object_get(page, "next_cursor"));
	json_t *item;
	size_t i;
	int r = 0;

	json_array_foreach(json_object_get(page, "items"), i, item)
	{
		r = on_item(ctx, item, err);
		if (r != 0)
			return r;
	}
	str_reset(cursor);
	if (next)
		address_add_part(cursor, next);
	return r;
}

int request_pages(struct link *link, const char *path,
	int (*on_item)(void *ctx, json_t *item, struct err *err), void *ctx, struct err *err)
{
	scoped_str struct str cursor = {0};
	const char *sign = strchr(path, '?') ? "&" : "?";
	int r;

	do {
		scoped_mem char *url = mem_printf("%s%slimit=%d%s%s", path, sign, PAGE,
			cursor.len ? "&cursor=" : "", cursor.len ? cursor.p : "");
		json_t *page = NULL;

		r = request_json(link, &(struct ask){.path = url}, &page, err);
		if (r == 0)
			r = take_page(page, on_item, ctx, &cursor, err);
		json_decref(page);
	} while (r == 0 && cursor.len);
	return r < 0 ? r : 0;
}

void request_new_once(char ret_once[REQUEST_ONCE_SIZE])
{
	char a[ID_SIZE], b[ID_SIZE];

	id_new("rq", a);
	id_new("rq", b);
	snprintf(ret_once, REQUEST_ONCE_SIZE, "%s%s", a, b + 3);
}
