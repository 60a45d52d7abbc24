/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox's change set, for the verbs that show it, take it over or throw it away. */
#ifndef CLI_PENDING_H
#define CLI_PENDING_H

#include "cli/cli.h"
#include "manifest/apply.h"
#include "manifest/changes.h"
#include "util/err.h"
#include "util/id.h"

enum pending_use {
	PENDING_SHOW,
	PENDING_APPLY,
	PENDING_DISCARD, /* also where a full disk keeps its sandbox from being mended */
};

struct pending {
	char id[ID_SIZE];
	struct change_set *set; /* NULL: there is none any more, or it is not for us to read */
	struct changes_list
		list;     /* its cow mounts, and the root's own folders while they are there */
	bool is_live;     /* the sandbox still runs */
	bool stays;       /* or may run again, or be forked: its own files are still there */
	bool is_unmended; /* it was killed, and there was no room to write that down */
	int lock_fd;
};

/* Keeps others from writing to a change set, until the descriptor is closed: -EBUSY where one does, -ENOENT where
 * there is no such set. */
int pending_lock(const char *dir, int *ret_fd, struct err *err);

/* Finds the sandbox, refuses another user's, and reads what changed. But to show, it needs root, and keeps others from
 * writing meanwhile. Release with pending_done() whatever it returned. */
int pending_open(const struct cli *cli, const char *name, enum pending_use use, struct pending *ret,
	struct err *err);
/* Mends its sandbox, once there may be room. */
int pending_mend(const struct cli *cli, struct pending *pending, struct err *err);
void pending_done(struct pending *pending);

/* Paths as a user gives them (NULL-free list of n; 0: all), sorted by the mount they lie in. */
struct pending_paths {
	char **paths; /* below the root of the mount */
	size_t n;
	bool is_meant; /* named, or nothing is */
};
/* One for each root of the list. A path that lies in none is an error with a sentence. own: an absolute path may also
 * lie in a folder of the sandbox's own root, which cannot be applied. */
int pending_sort_paths(const struct pending *pending, char **args, size_t n_args, bool own,
	struct pending_paths **ret_paths, struct err *err);
void pending_paths_free(struct pending_paths *paths, size_t n_roots);

/* Reads the changes of root i again where a root before it lies in the same folder of the host, which it may have changed.
 * Before applying it. */
int pending_look_again(struct pending *pending, size_t i, struct err *err);
/* Removes a change set of which nothing is left to apply; not while the sandbox runs. */
int pending_drop_settled(const struct cli *cli, struct pending *pending, struct err *err);

/* Says on stderr where not all of a root could be read; whether that is so. */
bool pending_say_unread(const struct changes *changes);

/* Takes all over, as run --apply does; says on stderr what came over and what stayed behind. 1 where something was
 * refused or could not be read, else 0. */
int pending_apply_all(const struct cli *cli, const char *id, struct err *err);

/* Who did what to the change set goes into the ledger. */
int pending_enter_act(const struct cli *cli, const char *id, const char *act, const char *detail,
	struct err *err);
int pending_enter_ledger(
	const struct cli *cli, const char *id, const char *act, size_t n_files, struct err *err);

/* What an apply that ended with r took over goes there too, also where the rest failed; is_all: nothing is left of the
 * set, which PENDING_NONE_LEFT says behind the number. Returns r, else the ledger's own error. */
#define PENDING_NONE_LEFT ", none left"
int pending_enter_applied(
	const struct cli *cli, const char *id, size_t n_files, bool is_all, int r, struct err *err);

#endif
