/* SPDX-License-Identifier: Apache-2.0 */
/* The index of sandboxes, and the end of a record. */
#include <string.h>

#include "store/store_internal.h"
#include "util/jsonw.h"

struct sandbox_call {
	const struct store_sandbox *sandbox; /* to put */
	const struct store_sandbox_query *query;
	const struct store_ended_query *ended;
	const char *account, *id, *text; /* text: a state, a place, or a reason */
	int64_t ms;                      /* a time, or a number */
	int limit;
	struct str labels;
	store_sandbox_fn fn;
	void *arg;
};

#define SANDBOX_COLUMNS "n, id, account, name, state, place, labels, created_ms, ended_ms"

static int on_sandbox(const struct db_value *row, void *arg)
{
	const struct sandbox_call *call = arg;
	struct store_sandbox sandbox = {
		.n = row[0].i,
		.id = row[1].text.p,
		.account = row[2].text.p,
		.name = row[3].text.p,
		.state = row[4].text.p,
		.place = row[5].text.p,
		.labels_json = row[6].text.p,
		.created_ms = row[7].i,
		.ended_ms = row[8].i,
	};

	return call->fn(&sandbox, call->arg);
}

static int put_labels(struct db *db, const struct store_sandbox *s)
{
	static const struct db_sql clear = {.text = "DELETE FROM sandbox_label WHERE sandbox = $1"};
	static const struct db_sql sql = {.text = "INSERT INTO sandbox_label (sandbox, name, value)"
						  " VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"};
	int64_t n = db_run(db, &clear, NULL, NULL, db_text(s->id));

	for (size_t i = 0; n >= 0 && i < s->n_labels; i++)
		n = db_run(db, &sql, NULL, NULL, db_text(s->id), db_text(s->labels[i].name),
			db_text(s->labels[i].value));
	return n < 0 ? (int)n : 0;
}

/* 1: it was there and is changed; 0: it is not there, or is another account's. */
static int change_sandbox(struct db *db, const struct sandbox_call *call)
{
	static const struct db_sql sql = {.text = "UPDATE sandbox SET name = $3, state = $4, place "
						  "= $5, labels = $6, ended_ms = $7"
						  " WHERE id = $1 AND account = $2"};
	const struct store_sandbox *s = call->sandbox;

	return (int)db_run(db, &sql, NULL, NULL, db_text(s->id), db_text(s->account),
		db_text(s->name), db_text(s->state), db_text(s->place), db_text(call->labels.p),
		db_int(s->ended_ms));
}

static int add_sandbox(struct db *db, const struct sandbox_call *call)
{
	static const struct db_sql sql = {
		.text = "INSERT INTO sandbox"
			" (id, n, account, name, state, place, labels, created_ms, ended_ms)"
			" SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9"
			" WHERE NOT EXISTS (SELECT 1 FROM tombstone WHERE sandbox = $1)"
			" ON CONFLICT DO NOTHING"};
	const struct store_sandbox *s = call->sandbox;
	int64_t n = 0;
	int r = store_take_numbers(db, "sandbox", 1, &n);

	if (r < 0)
		return r;
	return (int)db_run(db, &sql, NULL, NULL, db_text(s->id), db_int(n), db_text(s->account),
		db_text(s->name), db_text(s->state), db_text(s->place), db_text(call->labels.p),
		db_int(s->created_ms), db_int(s->ended_ms));
}

/* 0: it was; else it is another account's. */
static int is_forgotten(struct db *db, const char *id)
{
	static const struct db_sql sql = {.text = "SELECT 1 FROM tombstone WHERE sandbox = $1"};
	int64_t n = db_run(db, &sql, NULL, NULL, db_text(id));

	if (n == 0)
		return err_set(db->err, -EEXIST, "the sandbox is another account's");
	return n < 0 ? (int)n : 0;
}

static int put_sandbox(struct db *db, void *arg)
{
	const struct sandbox_call *call = arg;
	int n = change_sandbox(db, call);

	if (n == 0)
		n = add_sandbox(db, call);
	if (n == 0) /* another replica may have been quicker */
		n = change_sandbox(db, call);
	if (n == 0)
		return is_forgotten(db, call->sandbox->id);
	if (n == -EEXIST)
		return err_set(db->err, n, "there is no such account");
	if (n < 0)
		return n;
	n = put_labels(db, call->sandbox);
	return n < 0 ? n : 1;
}

static int make_labels(const struct store_sandbox *s, struct str *out, struct err *err)
{
	struct jsonw j = jsonw_to(out);

	if (s->n_labels > STORE_LABELS_MAX)
		return err_set(err, -EINVAL, "%zu labels: a sandbox has at most %d", s->n_labels,
			STORE_LABELS_MAX);
	jsonw_object(&j);
	for (size_t i = 0; i < s->n_labels; i++) {
		int r = STORE_CHECK_NAMES(err, s->labels[i].name, s->labels[i].value);

		if (r < 0)
			return r;
		jsonw_free_key(&j, slice_of(s->labels[i].name));
		jsonw_text(&j, s->labels[i].value);
	}
	jsonw_object_end(&j);
	return 0;
}

static int check_sandbox(const struct store_sandbox *s, struct err *err)
{
	if (!s->id || !*s->id)
		return err_set(err, -EINVAL, "a sandbox has an id");
	return STORE_CHECK_NAMES(err, s->id, s->name, s->state);
}

int store_sandbox_put(struct store *store, const struct store_sandbox *s, struct err *err)
{
	struct sandbox_call call = {.sandbox = s};
	int r = store_check_account(s->account, err);

	if (r == 0)
		r = check_sandbox(s, err);
	if (r == 0)
		r = make_labels(s, &call.labels, err);
	if (r == 0)
		r = store_change(store, put_sandbox, &call, err);
	str_done(&call.labels);
	return r;
}

static int get_sandbox(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT " SANDBOX_COLUMNS " FROM sandbox WHERE id = $1 AND account = $2"};
	struct sandbox_call *call = arg;
	int64_t n = db_run(db, &sql, on_sandbox, call, db_text(call->id), db_text(call->account));

	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such sandbox");
	return n < 0 ? (int)n : 0;
}

int store_sandbox_get(struct store *store, const char *account, const char *id, store_sandbox_fn fn,
	void *arg, struct err *err)
{
	struct sandbox_call call = {.account = account, .id = id, .fn = fn, .arg = arg};
	int r = store_check_account(account, err);

	return r < 0 ? r : store_read(store, get_sandbox, &call, err);
}

static int find_sandbox(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT " SANDBOX_COLUMNS " FROM sandbox WHERE id = $1"};
	struct sandbox_call *call = arg;
	int64_t n = db_run(db, &sql, on_sandbox, call, db_text(call->id));

	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such sandbox");
	return n < 0 ? (int)n : 0;
}

int store_sandbox_find(
	struct store *store, const char *id, store_sandbox_fn fn, void *arg, struct err *err)
{
	struct sandbox_call call = {.id = id, .fn = fn, .arg = arg};

	return store_read(store, find_sandbox, &call, err);
}

static int list_sandboxes(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT " SANDBOX_COLUMNS " FROM sandbox s"
			" WHERE account = $1 AND n < $2 AND ($3 = '' OR state = $3)"
			" AND ($4 = '' OR EXISTS (SELECT 1 FROM sandbox_label l"
			" WHERE l.sandbox = s.id AND l.name = $4 AND l.value = $5))"
			" ORDER BY n DESC LIMIT $6"};
	struct sandbox_call *call = arg;
	const struct store_sandbox_query *q = call->query;

	return (int)db_run(db, &sql, on_sandbox, call, db_text(q->account),
		db_int(q->before ? q->before : INT64_MAX), db_text(q->state),
		db_text(q->label_name), db_text(q->label_value), db_int(q->limit));
}

int store_sandbox_list(struct store *store, const struct store_sandbox_query *query,
	store_sandbox_fn fn, void *arg, struct err *err)
{
	struct sandbox_call call = {.query = query, .fn = fn, .arg = arg};
	int r = store_check_account(query->account, err);

	if (r == 0)
		r = store_check_limit(query->limit, STORE_PAGE_MAX, err);
	return r < 0 ? r : store_read(store, list_sandboxes, &call, err);
}

static int count_sandboxes(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT count(*) FROM sandbox WHERE account = $1 AND state = $2"};
	struct sandbox_call *call = arg;

	return (int)db_run(
		db, &sql, db_row_int, &call->ms, db_text(call->account), db_text(call->text));
}

int64_t store_sandbox_count(
	struct store *store, const char *account, const char *state, struct err *err)
{
	struct sandbox_call call = {.account = account, .text = state};
	int r = store_check_account(account, err);

	if (r == 0)
		r = store_read(store, count_sandboxes, &call, err);

	return r < 0 ? r : call.ms;
}

static int list_ended(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT " SANDBOX_COLUMNS " FROM sandbox WHERE place || '' = $1"
			" AND ended_ms > 0 AND ended_ms < $2 AND (ended_ms, id) > ($3, $4)"
			" ORDER BY ended_ms, id LIMIT $5"};
	struct sandbox_call *call = arg;
	const struct store_ended_query *q = call->ended;

	return (int)db_run(db, &sql, on_sandbox, call, db_text(q->place), db_int(q->before_ms),
		db_int(q->after_ms), db_text(q->after_id), db_int(q->limit));
}

int store_sandbox_ended(struct store *store, const struct store_ended_query *query,
	store_sandbox_fn fn, void *arg, struct err *err)
{
	struct sandbox_call call = {.ended = query, .fn = fn, .arg = arg};
	int r = store_check_limit(query->limit, STORE_PAGE_MAX, err);

	if (r == 0)
		r = STORE_CHECK_NAMES(err, query->place, query->after_id);
	return r < 0 ? r : store_read(store, list_ended, &call, err);
}

static int list_of_place(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT " SANDBOX_COLUMNS " FROM sandbox"
			" WHERE place = $1 AND n > $2 ORDER BY n LIMIT $3"};
	struct sandbox_call *call = arg;

	return (int)db_run(db, &sql, on_sandbox, call, db_text(call->text), db_int(call->ms),
		db_int(call->limit));
}

int store_sandbox_of_place(struct store *store, const char *place, int64_t after, int limit,
	store_sandbox_fn fn, void *arg, struct err *err)
{
	struct sandbox_call call = {
		.text = place, .ms = after, .limit = limit, .fn = fn, .arg = arg};
	int r = store_check_limit(limit, STORE_PAGE_MAX, err);

	if (r == 0)
		r = STORE_CHECK_NAMES(err, place);
	return r < 0 ? r : store_read(store, list_of_place, &call, err);
}

/* A record of a million rows takes longer than any other statement may. */
static int take_time(struct db *db)
{
	return db->driver->is_shared
	               ? db->driver->script(db, "SET LOCAL statement_timeout = '15min'")
	               : 0;
}

static int forget_sandbox(struct db *db, void *arg)
{
	static const struct db_sql bury = {
		.text = "INSERT INTO tombstone (sandbox, account, reason, at_ms)"
			" SELECT id, account, $3, $4 FROM sandbox WHERE id = $1 AND account = $2"
			" ON CONFLICT DO NOTHING"};
	/* Rows of other tables go with it; objects may be of no sandbox, so nothing ties them to one. */
	static const struct db_sql drop = {
		.text = "DELETE FROM sandbox WHERE id = $1 AND account = $2"};
	static const struct db_sql drop_objects = {
		.text = "DELETE FROM object WHERE sandbox = $1 AND account = $2"};
	struct sandbox_call *call = arg;
	int64_t n = take_time(db);

	if (n == 0)
		n = db_run(db, &bury, NULL, NULL, db_text(call->id), db_text(call->account),
			db_text(call->text), db_int(call->ms));
	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such sandbox");
	if (n > 0)
		n = db_run(db, &drop, NULL, NULL, db_text(call->id), db_text(call->account));
	if (n >= 0)
		n = db_run(
			db, &drop_objects, NULL, NULL, db_text(call->id), db_text(call->account));
	return n < 0 ? (int)n : 0;
}

int store_sandbox_forget(struct store *store, const char *account, const char *id,
	const char *reason, int64_t at_ms, struct err *err)
{
	struct sandbox_call call = {.account = account, .id = id, .text = reason, .ms = at_ms};
	int r = store_check_account(account, err);

	if (r == 0)
		r = STORE_CHECK_NAMES(err, id, reason);
	return r < 0 ? r : store_change(store, forget_sandbox, &call, err);
}
