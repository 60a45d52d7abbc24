/* SPDX-License-Identifier: Apache-2.0 */
/* A list of a control plane's as a table, or as JSON. */
#ifndef REMOTE_REMOTE_LIST_H
#define REMOTE_REMOTE_LIST_H

#include <jansson.h>

#include "cli/cli.h"
#include "cli/table.h"

enum remote_list_kind {
	REMOTE_LIST_TEXT,  /* a text, a flag, a number, a list of texts */
	REMOTE_LIST_TIME,  /* to the second */
	REMOTE_LIST_LIMIT, /* a number; 0 is none */
	REMOTE_LIST_COUNT, /* how many a list has */
};

struct remote_list {
	const char *path;
	struct {
		const char *heading, *key;
		enum remote_list_kind kind;
	} columns[TABLE_COLUMNS_MAX]; /* the first is what --quiet prints; ends with NULL */
};

/* All pages; path NULL: the list's own. */
int remote_list_print(
	const struct cli *cli, const struct remote_list *list, const char *path, struct err *err);
/* goes_on: behind those that were printed, so without headings; with --json an object a line, too. */
int remote_list_print_rows(const struct cli *cli, const struct remote_list *list,
	const json_t *rows, bool goes_on, struct err *err);
/* A text as a line, escaped. */
void remote_list_add_line(struct str *out, const char *text);

#endif
