/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of one record, for run and show: everything that report/summary.h asks for, read from the disk. */
#ifndef CLI_SUMMARY_SOURCE_H
#define CLI_SUMMARY_SOURCE_H

#include "cli/cli.h"
#include "report/summary.h"
#include "util/err.h"
#include "util/str.h"

enum summary_form {
	SUMMARY_FORM_TEXT,
	SUMMARY_FORM_JSON,
	SUMMARY_FORM_MARKDOWN,
};

struct summary_source;
/* Reads the whole record. ref: how the user named it, for the commands that are shown. */
int summary_source_open(const struct cli *cli, const char *id, const char *ref,
	struct summary_source **ret_source, struct err *err);
void summary_source_free(struct summary_source *source);
SCOPED_TYPE(summary_source)

void summary_source_write(
	struct summary_source *source, enum summary_form form, bool color, struct str *out);
/* Those of conditions (SUMMARY_REFUSED and so on) that hold; their names are added to names. */
unsigned summary_source_check(
	struct summary_source *source, unsigned conditions, struct str *names);

#endif
