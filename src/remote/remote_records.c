/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/remote_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/source.h"
#include "remote/remote_feed.h"
#include "remote/remote_texts.h"
#include "remote/request.h"
#include "util/mem.h"

#define PREFIX "sb_"

/* ---- one, by what it was called ---- */

struct search {
	const char *text;
	size_t skip, n;
	char *found; /* ID_SIZE bytes */
};

static int take_any(void *ctx, json_t *item, struct err *err)
{
	struct search *search = ctx;
	const char *id = json_string_value(json_object_get(item, "id"));

	if (!id || !id_is_valid("sb", id) ||
		strncmp(id + search->skip, search->text, strlen(search->text)) != 0)
		return 0;
	memcpy(search->found, id, ID_SIZE);
	search->n++;
	return search->text[0] == '\0'; /* any: the first is the newest */
}

static int find_last(struct link *link, char ret_id[ID_SIZE], struct err *err)
{
	struct search search = {.text = "", .found = ret_id};
	json_t *page = NULL, *first;
	int r = request_json(link, &(struct ask){.path = "/v1/sandboxes?limit=1"}, &page, err);

	first = json_array_get(json_object_get(page, "items"), 0);
	if (r == 0 && first)
		r = take_any(&search, first, err);
	json_decref(page);
	if (r >= 0 && search.n == 0)
		return err_set(err, -ENOENT, "'last': the account has no sandbox yet at %s",
			link->address.shown);
	return r < 0 ? r : 0;
}

static int find_prefix(struct link *link, const char *text, char ret_id[ID_SIZE], struct err *err)
{
	struct search search = {.text = text, .found = ret_id};
	int r = 0;

	search.skip = strncmp(text, PREFIX, strlen(PREFIX)) == 0 ? 0 : strlen(PREFIX);
	if (*text)
		r = request_pages(link, "/v1/sandboxes", take_any, &search, err);
	if (r < 0)
		return r;
	if (search.n == 0)
		return err_set(err, -ENOENT,
			"there is no sandbox with the ID '%s' at %s: `cloche ps --all` lists them",
			text, link->address.shown);
	if (search.n > 1)
		return err_set(err, -ENOTUNIQ,
			"'%s' stands for more than one sandbox (%zu): write more of the id", text,
			search.n);
	return 0;
}

/* A whole id is the server's to know. */
static int resolve(const struct cli *cli, const char *text, char ret_id[ID_SIZE], struct err *err)
{
	if (id_is_valid("sb", text)) {
		memcpy(ret_id, text, ID_SIZE);
		return 0;
	}
	if (strcmp(text, "last") == 0)
		return find_last(link_of(cli), ret_id, err);
	return find_prefix(link_of(cli), text, ret_id, err);
}

/* ---- all that have some labels ---- */

struct labelled {
	const struct spec_words *labels;
	struct source_ids *ids;
};

static int take_labelled(void *ctx, json_t *item, struct err *err)
{
	const struct labelled *labelled = ctx;
	const char *id = json_string_value(json_object_get(item, "id"));

	if (id && id_is_valid("sb", id) &&
		source_has_labels(json_object_get(item, "labels"), labelled->labels))
		source_ids_add(labelled->ids, id);
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The server looks for the first one. */
static int find(const struct cli *cli, const struct spec_words *labels, struct source_ids *ids,
	struct err *err)
{
	struct labelled labelled = {labels, ids};
	scoped_str struct str path = {0};
	int r;

	str_puts(&path, "/v1/sandboxes?label=");
	address_add_part(&path, labels->items[0]);
	r = request_pages(link_of(cli), path.p, take_labelled, &labelled, err);
	if (ids->n)
		qsort(ids->items, ids->n, ID_SIZE, compare);
	return r;
}

/* ---- events ---- */

static int open_feed(
	const struct cli *cli, const char *id, bool follow, struct feed **ret_feed, struct err *err)
{
	return remote_feed_open(link_of(cli), id, follow, ret_feed, err);
}

static void wait_for_more(const struct cli *cli, int timeout_ms)
{
	link_work(link_of(cli), NULL, 0, timeout_ms);
}

const struct elsewhere remote_records = {
	.resolve = resolve,
	.find = find,
	.open = open_feed,
	.summary = remote_texts_summary,
	.tree = remote_texts_tree,
	.wait = wait_for_more,
};
