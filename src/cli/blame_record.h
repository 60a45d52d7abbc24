/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths inside a record's sandbox stand for a path of the host, and whether the record speaks of them at all. */
#ifndef CLI_BLAME_RECORD_H
#define CLI_BLAME_RECORD_H

#include <jansson.h>

#include "util/slice.h"
#include "util/str.h"

struct blame_target {
	char *guest; /* the path inside */
	const char
		*mode; /* of its mount, borrowed from the meta; NULL: a path inside was asked for */
};
struct blame_targets {
	struct blame_target *items;
	size_t n;
};

/* What the mounts of a spec make of a host path; a mount below another hides what is there. */
void blame_record_map(const json_t *spec, const char *host, struct blame_targets *targets);
void blame_record_add(struct blame_targets *targets, const char *guest, const char *mode);
void blame_record_done(struct blame_targets *targets);

/* Whether a trace can say anything of one of them: looks for bytes, parses nothing. -errno where it cannot be read. */
int blame_record_mentions(const char *dir, const struct blame_targets *targets);

#endif
