/* SPDX-License-Identifier: Apache-2.0 */
/* What a control plane says of one sandbox as a whole: as struct elsewhere's functions. */
#ifndef REMOTE_REMOTE_TEXTS_H
#define REMOTE_REMOTE_TEXTS_H

#include "cli/elsewhere.h"

int remote_texts_summary(const struct cli *cli, const char *id, enum summary_form form, bool color,
	struct str *out, struct err *err);
int remote_texts_tree(const struct cli *cli, const char *id, const char *root, bool all,
	struct tree *ret_tree, char **ret_root, struct err *err);

#endif
