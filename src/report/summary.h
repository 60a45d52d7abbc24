/* SPDX-License-Identifier: Apache-2.0 */
/* One screen about one record: what was refused first, then what was done, then how much of it was seen.
 *
 * Made from the record alone: its events, meta.json, seal.json and the list of changes at the run's end. Where nobody
 * looked it says so and never that there was nothing. */
#ifndef REPORT_SUMMARY_H
#define REPORT_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"
#include "util/err.h"
#include "util/scoped.h"
#include "util/str.h"
#include "view/view_text.h"

struct summary;

/* What is not in the events. Borrowed until summary_free(). */
struct summary_facts {
	const char *id; /* of the sandbox */
	const char *
		ref; /* how the user may name it in the commands that are shown: "last"; NULL: by id */
	/* How text shows the program, as it may be pasted where it is read; NULL: "cloche", as Markdown always does. */
	const char *to_read, *to_apply;
	struct slice meta;    /* meta.json; empty: missing */
	struct slice seal;    /* seal.json; empty: not sealed yet */
	struct slice changes; /* as `changes --json`; empty: nobody compared */
	int64_t pending; /* files that differ and are not applied yet; -1: all that `changes` tells */
	int64_t pending_git,
		pending_modules; /* likewise below .git and node_modules, where pending is not -1 */
	bool is_cut;             /* its end is missing or marked as cut */
};

struct summary *summary_new(const struct summary_facts *facts);
void summary_free(struct summary *summary);
SCOPED_TYPE(summary)

/* Every event of the record. More may follow after any of those below. */
void summary_add(struct summary *summary, const struct event *ev);

void summary_text(struct summary *summary, const struct view_style *style, struct str *out);
void summary_json(
	struct summary *summary, struct str *out); /* `show --json`: one object, no line end */
void summary_markdown(struct summary *summary, struct str *out);

/* Conditions of --fail-on. */
#define SUMMARY_REFUSED \
	1u /* a system call or a destination was refused, or a secret misused; probes for features apart */
#define SUMMARY_DENIED     2u /* a file outside /proc, /sys, /dev was denied */
#define SUMMARY_INCOMPLETE 4u /* something was not seen */
#define SUMMARY_COMMAND    8u /* an exec or a derived command failed */

/* "refused,denied": bits. -EINVAL with a sentence. */
int summary_check_parse(const char *text, unsigned *ret_conditions, struct err *err);
/* Those of conditions that hold; their names, separated by ", ", are added to names (may be NULL). */
unsigned summary_check(struct summary *summary, unsigned conditions, struct str *names);

#endif
