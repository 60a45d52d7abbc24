/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox that is suspended, or that ended with --keep, for the verbs that go on from it. */
#ifndef CLI_AT_REST_H
#define CLI_AT_REST_H

#include "cli/cli.h"
#include "control/rest.h"
#include "util/err.h"
#include "util/id.h"

struct at_rest {
	char id[ID_SIZE];
	char *dir;      /* its folder */
	int lock_fd;    /* nobody else resumes, forks or removes it meanwhile */
	int changes_fd; /* nor applies or discards its changes, once its uppers are to move; else -1 */
	struct rest *rest;
};

/* Finds it by what the user wrote, refuses another user's, mends what a kill left half-way, and locks it. -EINVAL with
 * a sentence where it does not rest. Release with at_rest_done() whatever it returned. */
int at_rest_open(const struct cli *cli, const char *name, struct at_rest *ret, struct err *err);
void at_rest_done(struct at_rest *at);

/* Whether id's folder says that it rests; for root, since nobody else may look. */
bool at_rest_is(const struct cli *cli, const char *id);

#endif
