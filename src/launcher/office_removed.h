/* SPDX-License-Identifier: Apache-2.0 */
/* For the half without rights, which may not read the ledger: which of its records were removed. */
#ifndef LAUNCHER_OFFICE_REMOVED_H
#define LAUNCHER_OFFICE_REMOVED_H

#include <jansson.h>

#include "launcher/office.h"
#include "util/err.h"
#include "util/str.h"

/* Adds the answer to out: {"ok", "removed": {ID: {"actor", "detail"}}}. ids: at most 1,000 of them. Of records that are not
 * root's, and so no control plane's, nothing is told. */
int office_removed(
	const struct office *office, const json_t *ids, struct str *out, struct err *err);

#endif
