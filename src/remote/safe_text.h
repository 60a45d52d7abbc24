/* SPDX-License-Identifier: Apache-2.0 */
/* Text of a server's for a terminal. */
#ifndef REMOTE_SAFE_TEXT_H
#define REMOTE_SAFE_TEXT_H

#include "util/str.h"

/* Adds it with lines and tabs as they are, colors (ESC [ digits m) where they are wanted, and everything else that a terminal
 * would obey escaped. */
void safe_text_add(struct str *out, struct slice text, bool colors);

#endif
