/* SPDX-License-Identifier: Apache-2.0 */
/* How a row of keys is read; tokens end in one, too. */
#ifndef STORE_KEY_H
#define STORE_KEY_H

#include "store/db.h"
#include "store/store.h"

#define STORE_KEY_COLUMNS \
	"id, account, prefix, name, role, rate_limit, created_ms, used_ms, revoked_ms"
#define STORE_KEY_N_COLUMNS 9

int store_key_tell(const struct db_value *row, store_key_fn fn, void *arg);

#endif
