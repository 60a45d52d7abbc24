/* SPDX-License-Identifier: Apache-2.0 */
/* What stands for PostgreSQL in a build without libpq. */
#include <errno.h>

#include "store/db.h"

static int open_conn(const char *place, enum db_use use, struct db **ret_db, struct err *err)
{
	return err_set(err, -EOPNOTSUPP,
		"this cloche was built without PostgreSQL: name an SQLite file, or build with "
		"-Dpostgres=enabled");
}

const struct db_driver db_postgres = {.is_shared = true, .open = open_conn};
