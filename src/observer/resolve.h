/* SPDX-License-Identifier: Apache-2.0 */
/* Names that programs passed, to the place where the file is.
 *
 * The kernel half gives the folder that a relative name counts from. Links in the folders of a name are
 * followed here, beneath the box's root and without magic ones, a moment later than the program did; what
 * was found is kept until something happens that may have changed a link. A folder whose name holds no
 * link stays right whatever is unlinked, so only renames and new links throw those away. */
#ifndef OBSERVER_RESOLVE_H
#define OBSERVER_RESOLVE_H

#include <stdbool.h>

#include "observer/decode.h"
#include "util/scoped.h"
#include "util/str.h"

struct resolve;

/* root_fd: O_PATH of the box's root, borrowed; -1 where it is gone: names are only cleaned. */
struct resolve *resolve_new(int root_fd);
void resolve_free(struct resolve *resolve);
SCOPED_TYPE(resolve)

/* Sets out to the absolute path. False: it could not be made one, and out holds what is known. */
bool resolve_name(struct resolve *resolve, const struct decode_name *name, struct str *out);

/* What has just happened in the box. */
void resolve_links_changed(struct resolve *resolve); /* a rename, a new link */
void resolve_name_removed(struct resolve *resolve);

/* What is to be seen of a path now, links not followed. A file's times may lag behind the clock by a tick:
 * with sure, what may be older counts as older. */
enum resolve_sight {
	RESOLVE_UNSEEN, /* there is no root to look in */
	RESOLVE_ABSENT,
	RESOLVE_OLDER, /* there, and nothing was done to it since */
	RESOLVE_NEWER, /* made, moved or changed since */
};
enum resolve_sight resolve_look(
	const struct resolve *resolve, struct slice path, int64_t since_mono_ns, bool sure);

#endif
