/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in a piece of a text: what stands at a cut has lost what would tell it. */
#ifndef RECORD_REDACT_CUT_H
#define RECORD_REDACT_CUT_H

#include "record/redact_scan.h"

/* As redact_scan_text() of a text whose end is missing, or whose beginning is (is_tail). A word at the cut that may be
 * the rest of a token is taken out with the others, and so is what may be the rest of a private key. */
bool redact_cut_text(
	const struct redact_scan_rules *rules, struct slice text, bool is_tail, struct str *out);

#endif
