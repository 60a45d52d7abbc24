/* SPDX-License-Identifier: Apache-2.0 */
/* From what an agent's program called to the command it meant: wrappers are taken off. Pure.
 *
 *   timeout 10 env A=b pytest -x                      pytest -x
 *   bash -lc 'make test'                              make test
 *   bash -c "source .../snapshot.sh && eval 'ls'
 *            \< /dev/null && pwd -P >| /tmp/cwd"      ls
 *   sh -c "{ ls; }; __code=$?; pgrep -g 0 > f; ..."   ls
 *   bash -c ". snapshot; exec '/bin/bash' -c 'ls'"    ls */
#ifndef VIEW_COMMAND_FOLD_H
#define VIEW_COMMAND_FOLD_H

#include "event/event.h"
#include "util/str.h"

enum command_shape {
	COMMAND_ARGV,     /* arguments from `first` on */
	COMMAND_STRING,   /* a shell's */
	COMMAND_SESSION,  /* a shell that is fed commands: its children are the commands */
	COMMAND_PLUMBING, /* an agent looking at its own surroundings: no command */
};

struct command_fold {
	enum command_shape shape;
	size_t first;
	struct str command; /* COMMAND_STRING */
};

/* Zero-initialise *fold once; the same one can be used again. */
void command_fold_read(struct command_fold *fold, const struct event_list *argv);
void command_fold_done(struct command_fold *fold);

#endif
