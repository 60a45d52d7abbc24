/* SPDX-License-Identifier: Apache-2.0 */
/* What the control plane remembers, in SQLite or PostgreSQL. The records and the launcher's journal are the truth;
 * log, lifecycle and audit here are their index and can be made again from them.
 *
 * EVERY CALL BLOCKS and is for a worker thread, never for a loop; any number of threads may call at once. A write
 * returns when it is on disk; writes of many threads share one commit. All return 0 or a count, or a negative errno
 * with one sentence in err:
 *   -EINVAL     a text is too long, not UTF-8 or holds a NUL; a number is out of its range
 *   -ENOENT     there is no such thing, or it is another account's
 *   -EEXIST     the name or id is taken
 *   -EAGAIN, -EBUSY, -ETIMEDOUT, -ECONNRESET, -ECONNREFUSED   not now; -ECONNRESET: it may or may not be done
 *   -EROFS                                                    it takes nothing, just now or for good
 *   -ENOSPC, -EUCLEAN, -EIO                                   somebody has to look
 *
 * Texts given are borrowed for the call. What is found is told by a callback, row by row, on the caller's thread; its
 * texts live for that call, and it must not call the store. Nonzero from it ends the reading; a negative one is
 * returned. Clocks are the caller's: *_ms is time since 1970, and 0 "not yet". */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/err.h"
#include "util/scoped.h"
#include "util/slice.h"

#define STORE_NAME_MAX   256  /* bytes of an id, a name, a hash, a kind */
#define STORE_PAGE_MAX   1000 /* rows of one answer */
#define STORE_BATCH_MAX  1000 /* rows of one call that adds */
#define STORE_LABELS_MAX 64
#define STORE_SEARCH_MAX 8192    /* bytes of a row that are searched */
#define STORE_JSON_MAX   1048576 /* bytes of a JSON text, or of any other */

struct store;

/* -EACCES: we may not open it. place: "sqlite:PATH", or "postgres://..." as libpq reads it. Makes and migrates what is not there; refuses a
 * database of a newer version (-EPROTONOSUPPORT), a damaged or foreign one (-EUCLEAN). */
int store_open(const char *place, struct store **ret_store, struct err *err);
void store_close(
	struct store *store); /* waits for calls that are under way: there must be no new ones */
void store_free(struct store *store); /* the same, for scoped(store) */
SCOPED_TYPE(store)
int store_check(struct store *store, struct err *err); /* for /health: does it answer? */

/* ---- accounts and keys ---- */

struct store_account {
	const char *id, *name;
	int64_t max_sandboxes, max_execs, created_ms;
};
typedef int (*store_account_fn)(const struct store_account *account, void *arg);

int store_account_add(struct store *store, const struct store_account *account, struct err *err);
int store_account_get(
	struct store *store, const char *id, store_account_fn fn, void *arg, struct err *err);
int store_account_list(struct store *store, const char *after_id, int limit, store_account_fn fn,
	void *arg, struct err *err);

struct store_key {
	const char *id, *account, *hash, *prefix, *name, *role; /* hash is never told again */
	int64_t rate_limit, created_ms, used_ms, revoked_ms;
};
typedef int (*store_key_fn)(const struct store_key *key, void *arg);

int store_key_add(struct store *store, const struct store_key *key, struct err *err);
/* The first key that its account ever has: 1. 0 where it had one before, and nothing is done: one of all that try at once is
 * first. tell is called before it is kept; a negative errno of its is returned, with its sentence, and nothing is kept. It
 * may be called again, where the database wants another try. */
int store_key_add_first(struct store *store, const struct store_key *key,
	int (*tell)(void *arg, struct err *err), void *arg, struct err *err);
/* The key of this hash, unless it was revoked (-ENOENT). */
int store_key_find(
	struct store *store, const char *hash, store_key_fn fn, void *arg, struct err *err);
/* One of an account, unless it was revoked (-ENOENT). */
int store_key_get(struct store *store, const char *account, const char *id, store_key_fn fn,
	void *arg, struct err *err);
int store_key_list(struct store *store, const char *account, const char *after_id, int limit,
	store_key_fn fn, void *arg, struct err *err);
/* The key was used; an earlier time than the one kept changes nothing. */
int store_key_touch(
	struct store *store, const char *account, const char *id, int64_t used_ms, struct err *err);
/* Every replica hears of it, see store_on_revoked(). -ENOENT also where it was revoked before. */
int store_key_revoke(
	struct store *store, const char *account, const char *id, int64_t at_ms, struct err *err);
/* fn is called with the id of each key that is revoked: on the thread of who revokes, before that call returns, and,
 * where another replica does, on a thread of the store's. With NULL where some may have been missed, and all that is
 * kept of keys must be forgotten. A key may be told twice. To be called once, before other threads use the store. */
int store_on_revoked(
	struct store *store, void (*fn)(const char *key, void *arg), void *arg, struct err *err);

/* ---- sandboxes ---- */

struct store_label {
	const char *name, *value;
};

struct store_sandbox {
	int64_t n; /* told, not asked: where it stands in lists */
	const char *id, *account, *name, *state;
	const char *place;       /* the host whose record it is, as the server names it */
	const char *labels_json; /* told: an object */
	const struct store_label *labels;
	size_t n_labels; /* asked */
	int64_t created_ms, ended_ms;
};
typedef int (*store_sandbox_fn)(const struct store_sandbox *sandbox, void *arg);

/* Adds it, or changes all but account and created_ms. 0 where the record was forgotten, and nothing is done; else 1. */
int store_sandbox_put(struct store *store, const struct store_sandbox *sandbox, struct err *err);
int store_sandbox_get(struct store *store, const char *account, const char *id, store_sandbox_fn fn,
	void *arg, struct err *err);

/* The same, whosever it is: for what the server does by itself. */
int store_sandbox_find(
	struct store *store, const char *id, store_sandbox_fn fn, void *arg, struct err *err);

struct store_sandbox_query {
	const char *account;
	const char *state;                    /* NULL: any */
	const char *label_name, *label_value; /* NULL: any */
	int64_t before;                       /* n of the last one told; 0: from the newest */
	int limit;
};
int store_sandbox_list(struct store *store, const struct store_sandbox_query *query,
	store_sandbox_fn fn, void *arg, struct err *err);
int64_t store_sandbox_count(
	struct store *store, const char *account, const char *state, struct err *err);

/* How many there are in each state, of all accounts, and have not ended. */
typedef int (*store_count_fn)(const char *state, int64_t n, void *arg);
int store_sandbox_states(struct store *store, store_count_fn fn, void *arg, struct err *err);

/* Those of a place that ended before a time, oldest first: what retention may take. */
struct store_ended_query {
	const char *place;
	int64_t before_ms;
	int64_t after_ms; /* when the last one told ended; 0: from the oldest on */
	const char *after_id;
	int limit;
};
int store_sandbox_ended(struct store *store, const struct store_ended_query *query,
	store_sandbox_fn fn, void *arg, struct err *err);
/* All of a place, of any account, in the order of their numbers; after: that of the last one told, or 0. */
int store_sandbox_of_place(struct store *store, const char *place, int64_t after, int limit,
	store_sandbox_fn fn, void *arg, struct err *err);
/* All of a record at once: its rows of every table go, a tombstone stays. Nothing of it is taken in again. */
int store_sandbox_forget(struct store *store, const char *account, const char *id,
	const char *reason, int64_t at_ms, struct err *err);

/* ---- exec log ---- */

struct store_log_row {
	int64_t n; /* told, not asked: grows with each row in order of arrival, over all sandboxes */
	const char *sandbox, *exec, *source, *operation;
	const char *account; /* told: the sandbox's */
	int64_t seq, id;     /* of the event; of the row, counted in the sandbox */
	bool has_exit_code, output_truncated;
	int64_t exit_code, at_ms, duration_ms;
	struct slice
		search;   /* asked: command, paths; what is behind STORE_SEARCH_MAX is not found */
	const char *json; /* the whole row, as docs/events.md has it */
};
typedef int (*store_log_fn)(const struct store_log_row *row, void *arg);

/* Rows that are there already (same sandbox and seq) and those of unknown or forgotten sandboxes are left out.
 * Returns how many were added. */
int store_log_add(struct store *store, const struct store_log_row *rows, size_t n, struct err *err);
/* An exec was answered whose row is still to be added: pages wait for it. Never blocks. -EAGAIN where so many are
 * waiting that the caller must add the row before it answers. */
int store_log_answered(struct store *store, const char *sandbox, int64_t seq);
/* Its row will not come, since it cannot be added: pages wait no longer. */
void store_log_given_up(struct store *store, const char *sandbox, int64_t seq);

struct store_query {
	const char *account;
	const char *sandbox;    /* NULL: any of the account */
	int64_t from_ms, to_ms; /* at or after, before; 0: open */
	const char *q; /* log only: text that must occur, capital letters A-Z or not; NULL: any */
	bool is_newest_first;
	int64_t cursor; /* n of the last row told; 0: from the start */
	int limit;      /* 1 to STORE_PAGE_MAX */
	int64_t offset; /* log only: rows to pass over first, which are read; up to STORE_OFFSET_MAX */
};
#define STORE_OFFSET_MAX 1000000
/* No row is told twice, and none left out that is committed when the last page is read, whatever is added meanwhile:
 * new rows get higher numbers than all that can be seen. -ETIMEDOUT where rows of answered execs do not come. */
int store_log_page(struct store *store, const struct store_query *query, store_log_fn fn, void *arg,
	struct err *err);
int store_log_get(struct store *store, const char *account, const char *sandbox, const char *exec,
	store_log_fn fn, void *arg, struct err *err);

/* ---- lifecycle events and audit ---- */

struct store_event {
	int64_t n;           /* told */
	const char *account; /* told for lifecycle, asked for audit */
	const char *sandbox; /* lifecycle only */
	const char *place;   /* audit only, asked: whose journal */
	int64_t seq;         /* in the sandbox, or in the launcher's journal */
	int64_t at_ms;
	const char *kind, *json;
};
typedef int (*store_event_fn)(const struct store_event *event, void *arg);

/* As store_log_add(): what is there already is left out. */
int store_lifecycle_add(
	struct store *store, const struct store_event *events, size_t n, struct err *err);
int store_lifecycle_page(struct store *store, const struct store_query *query, store_event_fn fn,
	void *arg, struct err *err);
/* A row that says something else than the line is put right, and keeps its number; counted, too. */
int store_audit_add(
	struct store *store, const struct store_event *events, size_t n, struct err *err);
int store_audit_page(struct store *store, const struct store_query *query, store_event_fn fn,
	void *arg, struct err *err);
/* The first line of a place's journal that is missing behind the first one that is there: at the latest the one to come. 1
 * where there is none. Reads as many numbers as there are rows. */
int64_t store_audit_hole(struct store *store, const char *place, struct err *err);

/* ---- rows against what they are the index of ---- */

/* Removes, of one sandbox's rows from behind seq after up to seq last, those that say something else than these
 * (which are in the order of seq), or that are none of them. How many; to be added again by the caller. */
int store_log_weed(struct store *store, const char *sandbox, int64_t after, int64_t last,
	const struct store_log_row *rows, size_t n, struct err *err);
int store_lifecycle_weed(struct store *store, const char *sandbox, int64_t after, int64_t last,
	const struct store_event *events, size_t n, struct err *err);

/* ---- objects: secrets, rules, proxies, previews, webhooks ---- */

struct store_object {
	const char *account, *kind, *sandbox, *name, *json; /* sandbox NULL: the account's own */
	int64_t changed_ms;
};
typedef int (*store_object_fn)(const struct store_object *object, void *arg);

int store_object_put(struct store *store, const struct store_object *object, struct err *err);
/* Of the object given, account, kind, sandbox and name are read. */
int store_object_get(struct store *store, const struct store_object *which, store_object_fn fn,
	void *arg, struct err *err);
int store_object_remove(struct store *store, const struct store_object *which, struct err *err);
/* Those of the same account, kind and sandbox, by name; which->name is the last one told, or NULL. */
int store_object_list(struct store *store, const struct store_object *which, int limit,
	store_object_fn fn, void *arg, struct err *err);

/* Changes one that is there: -ENOENT where it was removed meanwhile, which store_object_put() would undo. */
int store_object_change(struct store *store, const struct store_object *object, struct err *err);
/* Those of the same account and kind, of all its sandboxes and its own, by name; the sandbox of which is not read. */
int store_object_list_all(struct store *store, const struct store_object *which, int limit,
	store_object_fn fn, void *arg, struct err *err);
/* Whoever's it is, of a kind whose names are ids. -ENOENT */
int store_object_find(struct store *store, const char *kind, const char *name, store_object_fn fn,
	void *arg, struct err *err);
/* Those of a kind whose sandbox has ended, whosever they are: what the server itself removes. */
int store_object_ended(struct store *store, const char *kind, int limit, store_object_fn fn,
	void *arg, struct err *err);
/* Those of which->kind with the text which->json in their JSON, whosever they are; each of that kind is read for it. */
int store_object_with(struct store *store, const struct store_object *which, int limit,
	store_object_fn fn, void *arg, struct err *err);

/* ---- deliveries of webhooks ---- */

struct store_delivery {
	int64_t n; /* told */
	const char *id, *account, *webhook, *state, *result, *json;
	int64_t attempt, due_ms, created_ms;
};
typedef int (*store_delivery_fn)(const struct store_delivery *delivery, void *arg);

int store_delivery_add(
	struct store *store, const struct store_delivery *deliveries, size_t n, struct err *err);
struct store_claim {
	int64_t now_ms, lease_ms;
	const char *but; /* ids of webhooks that are left out, with blanks between; NULL: none */
	int limit;
};
/* Those that are due, each to one caller only: it is nobody else's until lease_ms later. Its attempt is counted. */
int store_delivery_claim(struct store *store, const struct store_claim *claim, store_delivery_fn fn,
	void *arg, struct err *err);
/* What came of it: state sent, failed, or waiting until due_ms. -ESTALE where the attempt is no longer the last one. */
int store_delivery_finish(
	struct store *store, const struct store_delivery *outcome, struct err *err);
/* Waits once more, until due_ms; of the one given, id, account and webhook say which. -EBUSY where it still waits. */
int store_delivery_again(struct store *store, const struct store_delivery *which, struct err *err);
/* Newest first, of the account and webhook of the one given, which is otherwise the last one told (n), or 0. */
int store_delivery_page(struct store *store, const struct store_delivery *behind, int limit,
	store_delivery_fn fn, void *arg, struct err *err);

/* How many there are in each state, of all accounts. */
int store_delivery_states(struct store *store, store_count_fn fn, void *arg, struct err *err);

/* ---- things that are done once ---- */

enum store_once {
	STORE_ONCE_NEW,      /* the caller is to do it, then finish or drop */
	STORE_ONCE_BUSY,     /* somebody does it just now */
	STORE_ONCE_DONE,     /* status and answer are told */
	STORE_ONCE_MISMATCH, /* the same name for another request */
};
struct store_request {
	const char *account, *name, *request_hash, *answer;
	int64_t started_ms; /* now, where it begins; the same again where it ends */
	int64_t expires_ms;
	int64_t status;
};
typedef int (*store_request_fn)(const struct store_request *request, void *arg);

/* Returns an enum store_once. fn may be called for STORE_ONCE_DONE only. */
int store_request_begin(struct store *store, const struct store_request *request,
	store_request_fn fn, void *arg, struct err *err);
/* -ESTALE where it expired meanwhile and another one began it anew. */
int store_request_finish(struct store *store, const struct store_request *request, struct err *err);
int store_request_drop(struct store *store, const struct store_request *request, struct err *err);

struct store_token {
	const char *hash, *sandbox, *api_key;
	int64_t expires_ms;
};
int store_token_add(struct store *store, const struct store_token *token, struct err *err);
/* Spends it: fn gets the key that it was made with, if that still stands. -ENOENT for all but one caller ever, after
 * its time, for another sandbox, and where the key was revoked. */
int store_token_use(struct store *store, const char *hash, const char *sandbox, int64_t now_ms,
	store_key_fn fn, void *arg, struct err *err);

/* ---- rates, metrics, retention ---- */

/* Takes up to want of the limit of this second, shared by all replicas; how many, 0 where none are left. */
int store_rate_take(struct store *store, const char *name, int64_t second, int want, int limit,
	struct err *err);

struct store_metric {
	const char *sandbox, *json;
	int64_t at_ms;
};
typedef int (*store_metric_fn)(const struct store_metric *metric, void *arg);

int store_metric_add(
	struct store *store, const struct store_metric *metrics, size_t n, struct err *err);
struct store_metric_query {
	const char *account, *sandbox;
	int64_t after_ms, to_ms; /* behind the one, up to the other; to_ms 0: open */
	int limit;               /* 1 to STORE_PAGE_MAX */
};
/* Oldest first. By time and not by number, as they are plotted: one that comes later than a younger one of the same
 * sandbox is not told to who is behind it already. */
int store_metric_page(struct store *store, const struct store_metric_query *query,
	store_metric_fn fn, void *arg, struct err *err);

struct store_expiry {
	int64_t now_ms; /* tokens, requests and rates that are over */
	int64_t audit_before_ms, metrics_before_ms, deliveries_before_ms, tombstones_before_ms;
};
/* Removes some thousands of what is old; how many. To be called until 0. Records go by store_sandbox_forget(). */
int64_t store_expire(struct store *store, const struct store_expiry *expiry, struct err *err);

#endif
