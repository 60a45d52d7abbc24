/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_WATCH_FILES_TEXT_H
#define CLI_WATCH_FILES_TEXT_H

#include "util/str.h"
#include "view/view_text.h"

/* A line of `watch-files --jsonl` (docs/watch-files.md) as one for people, escaped, without its end. Nothing of what is no
 * such line. */
void watch_files_text_add(struct str *out, const struct view_style *style, struct slice json);

#endif
