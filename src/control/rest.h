/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox left in its folder to go on from: <state>/sandboxes/<id>/rest.json. Written last, so that where it
 * is, the files are whole; removed as soon as the sandbox runs again. Root's alone: it holds variables. */
#ifndef CONTROL_REST_H
#define CONTROL_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/spec.h"
#include "util/err.h"
#include "util/scoped.h"

#define REST_NAME "rest.json"
/* An empty file beside it while it is being resumed: where both are there and nobody holds the lock, a kill came. */
#define REST_BEGUN "resuming"

struct rest {
	bool is_over;        /* ended with --keep: its files can be forked, it cannot be resumed */
	bool is_wanted_gone; /* `cloche rm` came that far: the next mender removes it */
	uint32_t id_base;    /* of its id range, which a suspended one keeps */
	int64_t guest_ns;    /* when it stopped running */
	char *first_network; /* JSON of the rules it began with, where they were changed; NULL */
	struct spec *spec;   /* as it was then; no values of secrets */
};

/* Replaces what is there, whole or not at all, and waits for the disk. dir is the sandbox's folder. */
int rest_write(const char *dir, const struct rest *rest, struct err *err);
/* -ENOENT: it left nothing to go on from. The caller owns *ret_rest. */
int rest_read(const char *dir, struct rest **ret_rest, struct err *err);
void rest_free(struct rest *rest);
SCOPED_TYPE(rest)

#endif
