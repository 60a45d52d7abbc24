/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <errno.h>
#include <stdlib.h>

#include "store/db_escape.h"
#include "util/mem.h"

/* Puts texts that no database keeps as they are into db->bound, and the values point there. */
static void escape_texts(struct db *db, struct db_value *values, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		if (values[i].is_text && db_escape_is_needed(values[i].text))
			len += values[i].text.len * DB_ESCAPE_LEN;
	if (len == 0)
		return;
	str_reset(&db->bound);
	str_reserve(&db->bound, len); /* so that it stays where it is */
	for (size_t i = 0; i < n; i++) {
		struct slice *text = &values[i].text;
		size_t begin = db->bound.len;

		if (!values[i].is_text || !db_escape_is_needed(*text))
			continue;
		db_escape_add(&db->bound, *text);
		*text = (struct slice){db->bound.p + begin, db->bound.len - begin};
	}
}

static int ready_values(struct db *db, struct db_value *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (values[i].is_text && values[i].text.len > DB_TEXT_MAX)
			return err_set(db->err, -EINVAL,
				"a text of %zu bytes is longer than the database keeps (%d)",
				values[i].text.len, DB_TEXT_MAX);
	escape_texts(db, values, n);
	return 0;
}

void db_read_texts(struct db *db, struct db_value *row, int n)
{
	size_t len = 0;

	for (int i = 0; i < n; i++)
		if (row[i].is_text && db_escape_is_in(row[i].text))
			len += row[i].text.len + 1;
	if (len == 0)
		return;
	str_reset(&db->told);
	str_reserve(&db->told, len);
	for (int i = 0; i < n; i++) {
		size_t begin = db->told.len;

		if (!row[i].is_text || !db_escape_is_in(row[i].text))
			continue;
		db_escape_undo(&db->told, row[i].text);
		row[i].text = (struct slice){db->told.p + begin, db->told.len - begin};
		str_putc(&db->told, 0);
	}
}

int64_t db_run_values(struct db *db, const struct db_sql *sql, const struct db_value *values,
	size_t n_values, db_row_fn on_row, void *arg)
{
	struct db_value ready[DB_VALUES_MAX];
	int64_t n;
	int r;

	if (n_values > DB_VALUES_MAX)
		abort();
	for (size_t i = 0; i < n_values; i++)
		ready[i] = values[i];
	r = ready_values(db, ready, n_values);
	if (r < 0)
		return r;
	n = db->driver->run(db, sql, ready, n_values, on_row, arg);
	if (n > 0)
		db->n_changed += n;
	return n;
}

int db_many_row(struct db *db, const struct db_many *many, size_t row,
	struct db_value values[DB_VALUES_MAX])
{
	many->fill(values, row, many->arg);
	return ready_values(db, values, many->n_values);
}

static int64_t run_one_by_one(struct db *db, const struct db_sql *sql, const struct db_many *many)
{
	struct db_value values[DB_VALUES_MAX];
	int64_t n = 0, changed = 0;

	for (size_t i = 0; i < many->n_rows && changed >= 0; i++) {
		changed = db_many_row(db, many, i, values);
		if (changed == 0)
			changed = db->driver->run(db, sql, values, many->n_values, NULL, NULL);
		many->ret_changed[i] = (int)changed;
		n += changed;
	}
	return changed < 0 ? changed : n;
}

int64_t db_run_many(struct db *db, const struct db_sql *sql, const struct db_many *many)
{
	int64_t n;

	if (many->n_values > DB_VALUES_MAX || many->n_rows == 0 || many->n_rows > DB_MANY_MAX)
		abort();
	n = db->driver->run_many ? db->driver->run_many(db, sql, many)
	                         : run_one_by_one(db, sql, many);
	if (n > 0)
		db->n_changed += n;
	db->is_failed |= n < 0;
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
	if (!db)
		return;
	str_done(&db->bound);
	str_done(&db->told);
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
