/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <errno.h>
#include <stdlib.h>

#include "util/mem.h"
#include "util/utf8.h"

/* PostgreSQL takes no NUL and nothing but UTF-8; both take the same, so the other does not either. */
static int check_text(const struct db *db, const struct db_value *value)
{
	struct slice text = value->text;

	if (!value->is_text || value->is_null)
		return 0;
	if (text.len > DB_TEXT_MAX)
		return err_set(db->err, -EINVAL,
			"a text of %zu bytes is longer than the database keeps (%d)", text.len,
			DB_TEXT_MAX);
	if (memchr(text.p, 0, text.len) || !utf8_is_valid(text.p, text.len))
		return err_set(db->err, -EINVAL, "a text is not UTF-8 or holds a NUL");
	return 0;
}

int64_t db_run_values(struct db *db, const struct db_sql *sql, const struct db_value *values,
	size_t n_values, db_row_fn on_row, void *arg)
{
	int64_t n;

	for (size_t i = 0; i < n_values; i++) {
		int r = check_text(db, &values[i]);

		if (r < 0)
			return r;
	}
	n = db->driver->run(db, sql, values, n_values, on_row, arg);
	if (n > 0)
		db->n_changed += n;
	return n;
}

int db_begin(struct db *db, struct err *err)
{
	db->err = err;
	db->is_failed = false;
	db->is_commit_unsure = false;
	db->n_changed = 0;
	db->n_told = 0;
	return db->driver->begin(db);
}

int db_commit(struct db *db)
{
	return db->driver->commit(db);
}

void db_rollback(struct db *db)
{
	struct err *err = db->err;

	db->err = NULL; /* the reason for it is known already */
	db->driver->rollback(db);
	db->err = err;
}

int db_transact(struct db *db, db_work_fn work, void *arg, struct err *err)
{
	int r = db_begin(db, err), committed;

	if (r < 0)
		return r;
	r = work(db, arg);
	if (r < 0) {
		db_rollback(db);
		return r;
	}
	committed = db_commit(db);
	return committed < 0 ? committed : r;
}

void db_close(struct db *db)
{
	if (db)
		db->driver->close(db);
}

int db_row_int(const struct db_value *row, void *arg)
{
	*(int64_t *)arg = row[0].i;
	return 0;
}

void db_rows_reset(struct db_rows *rows)
{
	for (size_t i = 0; i < rows->n * rows->n_columns; i++)
		free((char *)rows->values[i].text.p);
	rows->n = 0;
}

void db_rows_done(struct db_rows *rows)
{
	db_rows_reset(rows);
	free(rows->values);
	*rows = (struct db_rows){0};
}

int db_rows_add(const struct db_value *row, void *arg)
{
	struct db_rows *rows = arg;
	struct db_value *to;

	if (rows->n == rows->cap) {
		rows->cap = rows->cap ? rows->cap * 2 : 4;
		rows->values = mem_grow(rows->values, rows->cap * rows->n_columns, sizeof(*to));
	}
	to = rows->values + rows->n++ * rows->n_columns;
	for (size_t i = 0; i < rows->n_columns; i++) {
		to[i] = row[i];
		to[i].text.p = row[i].text.p ? mem_copy(row[i].text.p, row[i].text.len) : NULL;
	}
	return 0;
}
