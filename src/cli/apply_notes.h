/* SPDX-License-Identifier: Apache-2.0 */
/* How the report of an apply reads. */
#ifndef CLI_APPLY_NOTES_H
#define CLI_APPLY_NOTES_H

#include "manifest/apply.h"
#include "util/str.h"

/* A line for each change, one for all that is left of a .git or node_modules. all: also those that simply came over. */
void apply_notes_add(struct str *out, const struct apply_report *report, bool all);
/* What of the host's own --force is about to overwrite or remove, with its hash: said before it is done. */
void apply_notes_before(
	struct str *out, const struct changes *changes, const struct apply_options *options);
/* An object: root, and a list for each result. */
void apply_notes_json(struct str *out, const char *root, const struct apply_report *report);

#endif
