/* SPDX-License-Identifier: Apache-2.0 */
/* A child of ours that reads foreign bytes: in fresh namespaces of all kinds, ids that are nobody's outside, a root
 * that holds nothing but what it is to fill, no network, limits, and a filter of system calls. It shares no memory and
 * has three descriptors. It dies with its parent.
 *
 * For a program with one thread. */
#ifndef IMAGE_JAIL_H
#define IMAGE_JAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/callfilter.h"
#include "util/err.h"
#include "util/str.h"

/* What the child does: reads 0, writes 1. Its report is parcels; where it fails, the sentence is all that comes. */
typedef int (*jail_work)(void *ctx, struct str *report, struct err *err);

struct jail {
	const char *what; /* for sentences: "unpack the layer" */
	uint32_t base;    /* first of the 65,536 host ids that it has */
	int root_fd;      /* a mount attached nowhere that becomes its root; -1: an empty folder */
	bool may_give_away; /* owners, modes and file capabilities, in its root */
	int in_fd, out_fd;  /* as 0 and 1; -1: nothing */
	uint64_t file_max;  /* bytes of one file; 0: it writes none */
	const struct callfilter *filter;
	jail_work work;
	void *ctx; /* as it is now: the child has a copy */
};

struct jail_child {
	const char *what;
	pid_t pid;
	int report_fd;
};
#define JAIL_NO_CHILD ((struct jail_child){.report_fd = -1})

int jail_start(const struct jail *jail, struct jail_child *ret_child, struct err *err);
/* Takes the report (to its end, at most max bytes) and the child's end. A sentence where it failed; -EINTR where a signal
 * wants us to stop (progress.h), and the child is killed. */
int jail_finish(struct jail_child *child, size_t max, struct str *ret_report, struct err *err);
/* Kills one that is still there. Safe twice. */
void jail_end(struct jail_child *child);

/* Both, for work that needs nothing but memory. */
int jail_ask(const struct jail *jail, size_t max, struct str *ret_report, struct err *err);

#endif
