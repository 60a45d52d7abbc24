/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs that fold a record into one shape and print it: tree, files and the like. */
#ifndef CLI_FOLD_H
#define CLI_FOLD_H

#include "cli/source.h"
#include "util/str.h"
#include "view/view_text.h"

struct fold {
	void *(*new)(const struct view_filter *filter);
	void (*free)(void *view);
	void (*add)(void *view, const struct event *ev);
	void (*json)(void *view, struct str *out); /* adds a list */
	void (*text)(void *view, const struct view_style *style, struct str *out);
	/* Elements have "at" and text a line for each, in the same order: several sandboxes read as one. */
	bool is_timeline;
	/* Of what the observer saw alone: a record without tracing is refused, not shown as empty. */
	bool needs_trace;
	/* Likewise, of one source of it alone: "network". */
	const char *needs_source;
	/* NULL, or gives a view its record: for what lies beside the events. */
	void (*open)(void *view, struct feed *feed);
};

/* The functions of one view by its prefix, as a row of struct fold takes them: FOLD_ADAPTERS(file_table), and
 * then {FOLD_ROW, .needs_trace = true}. */
#define FOLD_ADAPTERS(view) \
	static void *fold_view_new(const struct view_filter *filter) \
	{ \
		return view##_new(filter); \
	} \
	static void fold_view_free(void *v) \
	{ \
		view##_free(v); \
	} \
	static void fold_view_add(void *v, const struct event *ev) \
	{ \
		view##_add(v, ev); \
	} \
	static void fold_view_json(void *v, struct str *out) \
	{ \
		view##_json(v, out); \
	} \
	static void fold_view_text(void *v, const struct view_style *style, struct str *out) \
	{ \
		view##_text(v, style, out); \
	}
#define FOLD_ROW fold_view_new, fold_view_free, fold_view_add, fold_view_json, fold_view_text

/* Options are struct source_options. With --follow on a terminal the text is drawn again as it changes; else
 * it is printed once, when the sandbox has ended. Several sandboxes: each under its name (a timeline: merged, the
 * name first in each line), and with "sandbox" in each element of the JSON. */
int fold_run(const struct cli *cli, const struct fold *fold, const struct source_options *o,
	char **args, size_t n_args, struct err *err);

/* A list as JSON lines; with a sandbox, that goes first into each element. */
int fold_add_lines(struct str *out, struct slice list, const char *sandbox, struct err *err);

#endif
