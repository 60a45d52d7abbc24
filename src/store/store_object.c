/* SPDX-License-Identifier: Apache-2.0 */
/* Objects: JSON by account, kind, sandbox and name. */
#include <string.h>

#include "store/store_internal.h"

struct object_call {
	const struct store_object *object; /* what it is about */
	int limit;
	store_object_fn fn;
	void *arg;
};

static int check_object(const struct store_object *o, struct err *err)
{
	int r = store_check_account(o->account, err);

	return r < 0 ? r : STORE_CHECK_NAMES(err, o->kind, o->sandbox, o->name);
}

/* Of a sandbox only where that is the account's; a forgotten one gets no objects any more. */
static int put_object(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "INSERT INTO object (account, kind, sandbox, name, changed_ms, json)"
			" SELECT id, $2, $3, $4, $5, $6 FROM account WHERE id = $1 AND ($3 = ''"
			" OR EXISTS (SELECT 1 FROM sandbox WHERE id = $3 AND account = $1))"
			" ON CONFLICT (account, kind, sandbox, name)"
			" DO UPDATE SET changed_ms = excluded.changed_ms, json = excluded.json"};
	const struct store_object *o = ((struct object_call *)arg)->object;
	int64_t n = db_run(db, &sql, NULL, NULL, db_text(o->account), db_text(o->kind),
		db_text(o->sandbox), db_text(o->name), db_int(o->changed_ms), db_text(o->json));

	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such sandbox");
	return n < 0 ? (int)n : 0;
}

int store_object_put(struct store *store, const struct store_object *object, struct err *err)
{
	struct object_call call = {.object = object};
	int r = check_object(object, err);

	return r < 0 ? r : store_change(store, put_object, &call, err);
}

static int change_object(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "UPDATE object SET changed_ms = $5, json = $6 WHERE account = $1"
			" AND kind = $2 AND sandbox = $3 AND name = $4"};
	const struct store_object *o = ((struct object_call *)arg)->object;
	int64_t n = db_run(db, &sql, NULL, NULL, db_text(o->account), db_text(o->kind),
		db_text(o->sandbox), db_text(o->name), db_int(o->changed_ms), db_text(o->json));

	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such %.32s", o->kind);
	return n < 0 ? (int)n : 0;
}

int store_object_change(struct store *store, const struct store_object *object, struct err *err)
{
	struct object_call call = {.object = object};
	int r = check_object(object, err);

	return r < 0 ? r : store_change(store, change_object, &call, err);
}

static int on_object(const struct db_value *row, void *arg)
{
	const struct object_call *call = arg;
	struct store_object object = {
		.account = row[0].text.p,
		.kind = row[1].text.p,
		.sandbox = row[2].text.p,
		.name = row[3].text.p,
		.changed_ms = row[4].i,
		.json = row[5].text.p,
	};

	return call->fn(&object, call->arg);
}

#define COLUMNS "o.account, o.kind, o.sandbox, o.name, o.changed_ms, o.json"
#define OBJECTS "SELECT " COLUMNS " FROM object o WHERE account = $1 AND kind = $2 AND sandbox = $3"

static int get_object(struct db *db, void *arg)
{
	static const struct db_sql sql = {.text = OBJECTS " AND name = $4"};
	struct object_call *call = arg;
	const struct store_object *o = call->object;
	int64_t n = db_run(db, &sql, on_object, call, db_text(o->account), db_text(o->kind),
		db_text(o->sandbox), db_text(o->name));

	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such %.32s", o->kind);
	return n < 0 ? (int)n : 0;
}

int store_object_get(struct store *store, const struct store_object *which, store_object_fn fn,
	void *arg, struct err *err)
{
	struct object_call call = {.object = which, .fn = fn, .arg = arg};
	int r = check_object(which, err);

	return r < 0 ? r : store_read(store, get_object, &call, err);
}

static int remove_object(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "DELETE FROM object WHERE account = $1 AND kind = $2"
			" AND sandbox = $3 AND name = $4"};
	const struct store_object *o = ((struct object_call *)arg)->object;
	int64_t n = db_run(db, &sql, NULL, NULL, db_text(o->account), db_text(o->kind),
		db_text(o->sandbox), db_text(o->name));

	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such %.32s", o->kind);
	return n < 0 ? (int)n : 0;
}

int store_object_remove(struct store *store, const struct store_object *which, struct err *err)
{
	struct object_call call = {.object = which};
	int r = check_object(which, err);

	return r < 0 ? r : store_change(store, remove_object, &call, err);
}

static int list_objects(struct db *db, void *arg)
{
	static const struct db_sql sql = {.text = OBJECTS " AND name > $4 ORDER BY name LIMIT $5"};
	struct object_call *call = arg;
	const struct store_object *o = call->object;

	return (int)db_run(db, &sql, on_object, call, db_text(o->account), db_text(o->kind),
		db_text(o->sandbox), db_text(o->name), db_int(call->limit));
}

int store_object_list(struct store *store, const struct store_object *which, int limit,
	store_object_fn fn, void *arg, struct err *err)
{
	struct object_call call = {.object = which, .limit = limit, .fn = fn, .arg = arg};
	int r = check_object(which, err);

	if (r == 0)
		r = store_check_limit(limit, STORE_PAGE_MAX, err);

	return r < 0 ? r : store_read(store, list_objects, &call, err);
}

static int list_all(struct db *db, void *arg)
{
	static const struct db_sql sql = {.text = "SELECT " COLUMNS
						  " FROM object o WHERE account = $1 AND kind = $2"
						  " AND name > $3 ORDER BY name LIMIT $4"};
	struct object_call *call = arg;
	const struct store_object *o = call->object;

	return (int)db_run(db, &sql, on_object, call, db_text(o->account), db_text(o->kind),
		db_text(o->name), db_int(call->limit));
}

int store_object_list_all(struct store *store, const struct store_object *which, int limit,
	store_object_fn fn, void *arg, struct err *err)
{
	struct object_call call = {.object = which, .limit = limit, .fn = fn, .arg = arg};
	int r = check_object(which, err);

	if (r == 0)
		r = store_check_limit(limit, STORE_PAGE_MAX, err);
	return r < 0 ? r : store_read(store, list_all, &call, err);
}

static int find_object(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT " COLUMNS " FROM object o WHERE kind = $1 AND name = $2"};
	struct object_call *call = arg;
	const struct store_object *o = call->object;
	int64_t n = db_run(db, &sql, on_object, call, db_text(o->kind), db_text(o->name));

	if (n == 0)
		return err_set(db->err, -ENOENT, "there is no such %.32s", o->kind);
	return n < 0 ? (int)n : 0;
}

int store_object_find(struct store *store, const char *kind, const char *name, store_object_fn fn,
	void *arg, struct err *err)
{
	const struct store_object which = {.kind = kind, .name = name};
	struct object_call call = {.object = &which, .fn = fn, .arg = arg};
	int r = STORE_CHECK_NAMES(err, kind, name);

	return r < 0 ? r : store_read(store, find_object, &call, err);
}

static int list_ended(struct db *db, void *arg)
{
	static const struct db_sql sql = {
		.text = "SELECT " COLUMNS " FROM object o JOIN sandbox s ON s.id = o.sandbox"
			" WHERE o.kind = $1 AND s.ended_ms > 0 ORDER BY o.name LIMIT $2"};
	struct object_call *call = arg;

	return (int)db_run(
		db, &sql, on_object, call, db_text(call->object->kind), db_int(call->limit));
}

int store_object_ended(struct store *store, const char *kind, int limit, store_object_fn fn,
	void *arg, struct err *err)
{
	const struct store_object which = {.kind = kind};
	struct object_call call = {.object = &which, .limit = limit, .fn = fn, .arg = arg};
	int r = STORE_CHECK_NAMES(err, kind);

	if (r == 0)
		r = store_check_limit(limit, STORE_PAGE_MAX, err);
	return r < 0 ? r : store_read(store, list_ended, &call, err);
}

static int list_with(struct db *db, void *arg)
{
#define OF_KIND  "SELECT " COLUMNS " FROM object o WHERE kind = $1 AND "
#define IN_ORDER " > 0 ORDER BY account, name LIMIT $3"
	static const struct db_sql sql = {
		.text = OF_KIND "instr(json, $2)" IN_ORDER,
		.postgres = OF_KIND "strpos(json, $2)" IN_ORDER,
	};
	struct object_call *call = arg;
	const struct store_object *o = call->object;

	return (int)db_run(
		db, &sql, on_object, call, db_text(o->kind), db_text(o->json), db_int(call->limit));
}

int store_object_with(struct store *store, const struct store_object *which, int limit,
	store_object_fn fn, void *arg, struct err *err)
{
	struct object_call call = {.object = which, .limit = limit, .fn = fn, .arg = arg};
	int r = STORE_CHECK_NAMES(err, which->kind);

	if (r == 0)
		r = store_check_limit(limit, STORE_PAGE_MAX, err);
	return r < 0 ? r : store_read(store, list_with, &call, err);
}
