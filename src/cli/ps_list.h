/* SPDX-License-Identifier: Apache-2.0 */
/* What ps prints, whoever knows of the sandboxes: a table, ids, or JSON. */
#ifndef CLI_PS_LIST_H
#define CLI_PS_LIST_H

#include "cli/cli.h"
#include "cli/table.h"

struct ps_row {
	const char *id, *state;
	int64_t created_ms;      /* 0: not known */
	const char *name, *task; /* may be NULL */
	struct slice json;       /* all that is known; for --json and --jsonl */
};

/* Zero but for cli; ps_list_done() at the end. */
struct ps_list {
	const struct cli *cli;
	struct table table;
	struct str out; /* JSON or ids */
	size_t n;
};

void ps_list_add(struct ps_list *list, const struct ps_row *row); /* in the order of printing */
int ps_list_print(struct ps_list *list, struct err *err);
void ps_list_done(struct ps_list *list);

/* A clock time, or a duration before now. */
int ps_list_parse_since(const char *text, int64_t *ret_ms, struct err *err);

#endif
