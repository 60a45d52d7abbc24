/* SPDX-License-Identifier: Apache-2.0 */
/* `changes --json` as lines for people. */
#ifndef CLI_CHANGES_TEXT_H
#define CLI_CHANGES_TEXT_H

#include <jansson.h>

#include "util/str.h"
#include "view/view_text.h"

/* One root: its name, a line a change ("M path"), what was skipped, what needs a look. Everything is escaped. */
void changes_text_add(struct str *out, const struct view_style *style, const json_t *root);

#endif
