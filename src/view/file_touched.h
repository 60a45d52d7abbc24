/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths a sandbox was seen to change: whether a change of a file can be its own. Bounded; what does not fit, and
 * what was not seen, makes the answer that nobody knows. */
#ifndef VIEW_FILE_TOUCHED_H
#define VIEW_FILE_TOUCHED_H

#include <stdbool.h>

#include "event/event.h"
#include "util/scoped.h"
#include "util/slice.h"

#define FILE_TOUCHED_MAX   200000        /* paths */
#define FILE_TOUCHED_BYTES (64ULL << 20) /* that they are long together */

enum file_touch {
	FILE_TOUCH_NONE,
	FILE_TOUCH_RIGHTS,  /* mode, owner, attributes, the number of its names */
	FILE_TOUCH_CONTENT, /* opened for writing, made, moved, deleted */
	FILE_TOUCH_UNKNOWN,
};

/* What one event says of one path. */
struct file_touch_of {
	struct slice path;
	enum file_touch how;
	bool below; /* what may be a folder moved: what lies below it, too */
};
#define FILE_TOUCH_PATHS 2
/* How many paths it changed: 0 where it changed none, or failed. Pure. */
size_t file_touch_read(const struct event *ev, struct file_touch_of ret[FILE_TOUCH_PATHS]);

struct file_touched;

struct file_touched *file_touched_new(void);
void file_touched_free(struct file_touched *touched);
SCOPED_TYPE(file_touched)

/* Only what lies beneath such a folder (or is it) is kept, once one was added. Borrowed. */
void file_touched_add_root(struct file_touched *touched, struct slice root);
void file_touched_add(struct file_touched *touched, const struct event *ev);
/* Walks the paths: for (i = 0; file_touched_next(touched, &i, &path);). */
bool file_touched_next(const struct file_touched *touched, size_t *i, struct slice *ret_path);
/* Itself, or by a folder above it that moved. Any number of threads may ask at once. */
enum file_touch file_touched_find(const struct file_touched *touched, struct slice path);

#endif
