/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/watch_fold.h"

#include <sys/stat.h>

static bool is_written(const struct watch_seen *before, const struct watch_seen *now, unsigned why)
{
	if (!S_ISREG(now->mode))
		return false;
	return (why & WATCH_WHY_WRITE) ||
	       ((why & WATCH_WHY_COMPARE) &&
		       (before->size != now->size || before->mtime_ns != now->mtime_ns));
}

static bool has_other_rights(const struct watch_seen *before, const struct watch_seen *now)
{
	if (before->uid != now->uid || before->gid != now->gid)
		return true;
	return !S_ISLNK(now->mode) && ((before->mode ^ now->mode) & 07777) != 0;
}

size_t watch_fold(const struct watch_seen *before, const struct watch_seen *came,
	const struct watch_seen *now, unsigned why,
	struct watch_fold_line ret_lines[WATCH_FOLD_MAX])
{
	const struct watch_seen *base = came ? came : before;
	bool is_replaced = before->mode && (came || (why & WATCH_WHY_MADE));
	struct watch_fold_line *line = ret_lines;

	if (!base->mode) {
		*line = (struct watch_fold_line){.kind = WATCH_CREATED};
		return 1;
	}
	if ((base->mode ^ now->mode) & S_IFMT) {
		line[0] = (struct watch_fold_line){.kind = WATCH_DELETED};
		line[1] = (struct watch_fold_line){.kind = WATCH_CREATED};
		return 2;
	}
	if (came)
		*line++ = (struct watch_fold_line){.kind = WATCH_RENAMED, .replaced = is_replaced};
	if (!came && is_replaced)
		*line++ = (struct watch_fold_line){.kind = WATCH_WRITTEN, .replaced = true};
	else if (is_written(base, now, why))
		*line++ = (struct watch_fold_line){.kind = WATCH_WRITTEN};
	if (has_other_rights(base, now))
		*line++ = (struct watch_fold_line){.kind = WATCH_MODE};
	return (size_t)(line - ret_lines);
}
