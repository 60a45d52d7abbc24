/* SPDX-License-Identifier: Apache-2.0 */
/* A change of a watched folder as one line of JSON: docs/watch-files.md. */
#ifndef MANIFEST_WATCH_LINE_H
#define MANIFEST_WATCH_LINE_H

#include "manifest/watch.h"
#include "util/str.h"

struct watch_line {
	const char *base;           /* absolute path of the folder */
	uint32_t id_base, id_count; /* as in struct tree_config */
};

const char *watch_line_word(enum watch_kind kind); /* "created", ... */
/* The whole path of something below the base; path NULL gives nothing. */
void watch_line_add_path(const struct watch_line *line, const char *path, struct str *out);
/* "uid:gid" as the sandbox counts. */
#define WATCH_OWNER_SIZE 32
void watch_line_owner(const struct watch_line *line, const struct watch_change *change,
	char ret[WATCH_OWNER_SIZE]);
/* When it happened, wall clock. */
int64_t watch_line_at_ms(const struct watch_change *change);
/* One object, without a line end. */
void watch_line_write(
	const struct watch_line *line, const struct watch_change *change, struct str *out);

#endif
