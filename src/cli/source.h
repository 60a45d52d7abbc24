/* SPDX-License-Identifier: Apache-2.0 */
/* Where a view's events come from: one record, or all with some labels, merged by the clock. */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include <jansson.h>

#include "cli/cli.h"
#include "cli/feed.h"
#include "cli/option.h"
#include "event/event_json.h"
#include "spec/spec.h"
#include "util/id.h"
#include "view/view_filter.h"

/* The options that all views share. */
struct source_options {
	const char *exec, *since, *until;
	bool noise, internal, follow;
	struct spec_words labels; /* K=V */
};
extern const struct option source_options_table[];
extern const struct option_group source_options_groups[];                     /* just that table */
int source_options_add_label(void *base, const char *value, struct err *err); /* one more K=V */
/* For a verb's row; options begin with a struct source_options. */
void source_options_done(void *options);
/* Usage: one id or labels, bounds that can be read. */
int source_options_check(void *options, char **args, size_t n_args, struct err *err);

/* Whether an object of labels has all of these (K=V). */
bool source_has_labels(const json_t *have, const struct spec_words *labels);

/* The sandboxes meant by args or by labels: at least one. Freed by the caller. */
struct source_ids {
	char (*items)[ID_SIZE];
	size_t n;
};
int source_find(const struct cli *cli, const struct source_options *o, char **args, size_t n_args,
	struct source_ids *ret_ids, struct err *err);
void source_ids_add(struct source_ids *ids, const char *id);
void source_ids_done(struct source_ids *ids);

struct source;

/* Opens the records of ids. Bounds and exec are looked up in each. */
int source_open(const struct cli *cli, const struct source_options *o, const struct source_ids *ids,
	struct source **ret_source, struct err *err);
void source_free(struct source *source);
SCOPED_TYPE(source)

/* How many records, and the filter and id of one. */
const struct view_filter *source_filter(const struct source *source, size_t i);
struct feed *source_feed(const struct source *source, size_t i); /* for its blobs */

/* The next event, good until the next call: 1. 0: no more for now. None is left out: views put the filter
 * on what they made of all. *ret_line is its line in the journal, *ret_i its record. */
int source_next(struct source *source, const struct event **ret_ev, struct slice *ret_line,
	size_t *ret_i, struct err *err);
/* After 0, with --follow: waits until there may be more: 1; 0: every record has ended. */
int source_wait(struct source *source);
/* At the end: warns of lines that could not be read; -EBADMSG where a record has nothing but such. ids given to
 * source_open() must live until then. */
int source_finish(const struct source *source, struct err *err);

#endif
