/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox changed below one root: the list, by content and never by time.
 *
 * changes_read() compares an upper with the host folder below it, sandbox running or gone. Directories stand in
 * the list for apply; those that say nothing beyond the files in them are marked CHANGE_QUIET and are
 * neither counted nor shown. How the list is made: manifest/scan.h. */
#ifndef MANIFEST_CHANGES_H
#define MANIFEST_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "manifest/change_set.h"
#include "util/digest.h"
#include "util/err.h"
#include "util/scoped.h"
#include "util/slice.h"
#include "util/str.h"

enum change_kind {
	CHANGE_NONE, /* taken out of the list */
	CHANGE_ADDED,
	CHANGE_REMOVED,
	CHANGE_CHANGED,
	CHANGE_RENAMED,
	CHANGE_MODE, /* mode, owner or user attributes only */
	CHANGE_N_KINDS
};

#define CHANGE_QUIET        1u  /* a folder that goes without saying */
#define CHANGE_SKIPPED      2u  /* below a .git or node_modules: counted there, not listed */
#define CHANGE_RUNS_ON_HOST 4u  /* the host would run it, or what it names */
#define CHANGE_HOST_CHANGED 8u  /* the host's file is not the one the sandbox started from */
#define CHANGE_OWNER        16u /* owner or group differ from the file below */
#define CHANGE_ATTRIBUTES   32u /* user.* attributes differ */
#define CHANGE_REPLACED     64u /* REMOVED: something of another type stands at its path now */
#define CHANGE_LOST         256u /* its data was below and is not there any more, or nobody can tell */
#define CHANGE_UNREAD       128u /* a hash is missing: too large, or it could not be read */
#define CHANGE_UNSURE \
	512u /* CHANGED, RENAMED in an rw folder: it may hold what it held, which nobody had read */

#define CHANGE_UNSEEN \
	1024u /* the host may have put another folder around it: only its content can say that it is what was seen */

/* A file on one side. */
struct change_side {
	mode_t mode; /* with type; 0 where there is nothing */
	uid_t uid;   /* as on disk */
	gid_t gid;
	int64_t size;
	int64_t mtime_ns, ctime_ns;
	uint64_t inode;
	char sha256[DIGEST_HEX_SIZE];     /* regular files; "" where not read */
	char attributes[DIGEST_HEX_SIZE]; /* content_attributes() */
	bool has_capabilities;
	bool has_other_names; /* hard links */
	char *target;         /* links */
};

struct change {
	enum change_kind kind;
	unsigned flags;
	char *path; /* below the root, as the sandbox sees it; "." is the root itself */
	char *from; /* RENAMED: its old path. Others inside a renamed folder: the path there. Else NULL */
	char *data; /* where below its data lies, for a file that has none of its own above; else NULL */
	int64_t data_ctime_ns; /* of that file */
	bool is_data_unsure;   /* nothing but its content can say that it is the file it was */
	char *was; /* CHANGED: the file below, gone from there, that was renamed over it; else NULL */
	size_t own_layer; /* number of the layer that holds it: 0 is the upper (manifest/stack.h) */
	char *own;        /* its path there; NULL: path */
	size_t stored_layer; /* a file without data, which lies in a shared layer: its number, */
	char *stored;        /* and the path there; else NULL */
	struct change_side before, after;
	char state[DIGEST_HEX_SIZE]; /* of the upper's side, for the journal */
	size_t skipped_len;          /* SKIPPED: this much of path is the skipped folder */
};

struct changes {
	char *root;                       /* absolute, inside */
	int n;                            /* mount number, -1 for the root's own layers */
	bool cow;                         /* can be applied */
	bool rw;                          /* written through: the changes are the host's already */
	const struct change_layer *layer; /* borrowed from the set */
	struct change *items;             /* in path order */
	size_t n_items;
	struct change *
		leaning; /* no change, but their data lies below at another place, which may change */
	size_t n_leaning;
	bool counted; /* only n_files says something: nothing is listed */
	size_t n_files;
	char *unread;    /* a sentence where something could not be read, else NULL */
	bool is_partial; /* that was names or marks: a removal here may be half of a rename */
};

/* Which changes: all of a layer, or what lies at or below one of its folders. */
struct changes_query {
	const struct change_layer *layer;
	const char *below; /* "" for all, else a path in the layer without slash at either end */
	bool count_only;   /* no hashes: only kinds and paths */
};

/* Opens what the sandbox's side of a change is, and what holds its data where that is in the sandbox's layers (not
 * where data is set). A descriptor or a negative errno; -ENODATA where a living sandbox has put another file there just now. */
int changes_open_own(const struct change_layer *layer, const struct change *change, int flags);
int changes_open_stored(const struct change_layer *layer, const struct change *change, int flags);
/* Where that is: the number of the layer, and the path in it. */
size_t changes_data_layer(const struct change *change);
const char *changes_data_path(const struct change *change);

/* Needs root: marks and files of other ids. */
int changes_read(const struct change_set *set, const struct changes_query *query,
	struct changes **ret_changes, struct err *err);
void changes_free(struct changes *changes);
SCOPED_TYPE(changes)

/* All roots of a set: each mount, then of the root's own layers /etc and /usr/local, and /root and /home, of which
 * only the agent's files are counted. A root that cannot be read is there with its sentence in unread. */
struct changes_list {
	struct changes **roots;
	size_t n;
};
int changes_read_all(const struct change_set *set, struct changes_list *ret_list, struct err *err);
void changes_list_done(struct changes_list *list);
/* What the journal knows a file or link by; "" where its content was not read, or it is neither. */
void changes_content(const struct change_side *side, char ret[DIGEST_HEX_SIZE]);
/* Whether a file below with this time of change (in ns) may have been changed since the sandbox was made. */
bool changes_is_since(const struct change_set *set, int64_t ctime_ns);
/* Writes into the journal what the host's file below one change holds, where that is known. */
int changes_keep_content(
	struct change_set *set, const struct changes *changes, const struct change *change);
/* The same of the file that holds its data, where that is another one, not touched so far and not in the journal. */
int changes_keep_data(
	struct change_set *set, const struct changes *changes, const struct change *change);
/* Remembers what the host's files below hold that it has not touched so far, so that a later touch without new content
 * is not taken for a change. Call once, at the end of a run. */
int changes_keep_seen(struct change_set *set, const struct changes_list *list);

/* For those who build lists. */
struct change *changes_add(
	struct changes *changes, enum change_kind kind, char *path); /* takes path */
void changes_sort(struct changes *changes);
void changes_mark_quiet(struct changes *changes);                          /* sorted */
void changes_list_add(struct changes_list *list, struct changes *changes); /* takes it */
/* Why the host would run it (runs_on_host.h), or NULL. CHANGE_RUNS_ON_HOST also looks into a package.json. */
const char *changes_runs_on_host(const struct change *change);
/* Whether what is there now of a package that others brought has scripts that its installation runs, or cannot be read. */
bool changes_dependency_runs(int root_fd, const struct change *change);
/* Its data lies below at another place than the one it is compared with. */
bool changes_is_far(const struct change *change);
/* How much of a path is a folder whose changes are counted and not listed (.git, node_modules); 0: none. */
size_t changes_skipped_len(struct slice path);
bool changes_is_listed(const struct change *change); /* not QUIET, SKIPPED or NONE */
/* The path in the words of before or after: REMOVED in a renamed folder was elsewhere. */
const char *changes_shown_path(const struct change *change);

#endif
