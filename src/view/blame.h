/* SPDX-License-Identifier: Apache-2.0 */
/* Who made a path what it is: every change to it in one record, the newest first.
 *
 * What lay at the path may have had other names: a rename that led there, of it or of a folder above, is followed back,
 * until the file was made. What was opened for writing counts as written. Memory goes by changes in the record, of which
 * the last BLAME_EVENTS_MAX are kept, and old names are followed as far as BLAME_ALIASES_MAX and BLAME_WORK_MAX go. */
#ifndef VIEW_BLAME_H
#define VIEW_BLAME_H

#include "event/event.h"
#include "util/scoped.h"
#include "view/command_list.h"
#include "view/process_tree.h"

#define BLAME_ALIASES_MAX 1000 /* old names at once */
#define BLAME_EVENTS_MAX  4000000
#define BLAME_WORK_MAX    5000000 /* names looked at, and bytes of those made by sixteens */

enum blame_change {
	BLAME_CREATED,
	BLAME_WRITTEN,
	BLAME_RENAMED,
	BLAME_DELETED,
	BLAME_MODE,
	BLAME_N_CHANGES
};

struct blame_row {
	enum blame_change change;
	struct slice path, from; /* from: of a rename; of a link what it stands for */
	int64_t pid, wall_ms, guest_ns;
	uint64_t seq, first_seq; /* of the last and the first that it stands for */
	size_t times;
	struct slice exec;
	const struct process_node *node; /* NULL: not known */
	const struct command *command;   /* likewise */
};

struct blame;

struct blame *blame_new(void);
void blame_free(struct blame *blame);
SCOPED_TYPE(blame)

/* A path that is asked for, absolute and clean; a folder: all below, too. */
void blame_ask(struct blame *blame, struct slice path);
void blame_add(struct blame *blame, const struct event *ev);

/* After the last event: how many rows; they are good as long as blame. */
size_t blame_settle(struct blame *blame);
bool blame_is_cut(const struct blame *blame); /* then: whether there was more than is kept */
const struct blame_row *blame_get(const struct blame *blame, size_t i);
const char *blame_word(enum blame_change change);

#endif
