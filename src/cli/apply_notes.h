/* SPDX-License-Identifier: Apache-2.0 */
/* How the report of an apply reads. */
#ifndef CLI_APPLY_NOTES_H
#define CLI_APPLY_NOTES_H

#include "cli/cli.h"
#include "manifest/apply.h"
#include "util/str.h"

/* A line for each change, but one for all that is left of a .git or node_modules, and a number for what goes past 20
 * that say the same. --verbose: each; --quiet: without those that simply came over. */
void apply_notes_add(struct str *out, const struct apply_report *report, const struct cli *cli);
/* The last line: how many. */
void apply_notes_total(struct str *out, const size_t counts[APPLY_N_RESULTS]);
/* What of the host's own --force is about to overwrite or remove, with its hash: said before it is done. */
void apply_notes_before(
	struct str *out, const struct changes *changes, const struct apply_options *options);
/* An object: root, and a list for each result. */
void apply_notes_json(struct str *out, const char *root, const struct apply_report *report);

#endif
