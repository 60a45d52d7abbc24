/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of the store, call by call, on each database. */
#include "store_place.h"
#include "util/str.h"

/* Row functions that add what they are told to a str, one line for each. */
static int on_account(const struct store_account *a, void *arg)
{
	str_printf(arg, "%s %s %lld %lld %lld\n", a->id, a->name, (long long)a->max_sandboxes,
		(long long)a->max_execs, (long long)a->created_ms);
	return 0;
}

static int on_key(const struct store_key *k, void *arg)
{
	str_printf(arg, "%s %s %s %s %s %lld %lld %lld %lld %s\n", k->id, k->account, k->prefix,
		k->name, k->role, (long long)k->rate_limit, (long long)k->created_ms,
		(long long)k->used_ms, (long long)k->revoked_ms, k->hash ? k->hash : "-");
	return 0;
}

static int on_sandbox(const struct store_sandbox *s, void *arg)
{
	str_printf(arg, "%lld %s %s %s %s %s %s %lld %lld\n", (long long)s->n, s->id, s->account,
		s->name, s->state, s->place, s->labels_json, (long long)s->created_ms,
		(long long)s->ended_ms);
	return 0;
}

static int on_event(const struct store_event *e, void *arg)
{
	str_printf(arg, "%s %s %lld %lld %s %s\n", e->account, e->sandbox, (long long)e->seq,
		(long long)e->at_ms, e->kind, e->json);
	return 0;
}

static int on_object(const struct store_object *o, void *arg)
{
	str_printf(arg, "%s %s %s %s %lld %s\n", o->account, o->kind,
		*o->sandbox ? o->sandbox : "-", o->name, (long long)o->changed_ms, o->json);
	return 0;
}

static int on_delivery(const struct store_delivery *d, void *arg)
{
	str_printf(arg, "%s %s %lld %lld %s %s\n", d->id, d->state, (long long)d->attempt,
		(long long)d->due_ms, *d->result ? d->result : "-", d->json);
	return 0;
}

static int on_request(const struct store_request *q, void *arg)
{
	str_printf(arg, "%s %lld %s\n", q->name, (long long)q->status, q->answer);
	return 0;
}

static int on_metric(const struct store_metric *m, void *arg)
{
	str_printf(arg, "%lld %s\n", (long long)m->at_ms, m->json);
	return 0;
}

static void test_accounts(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};

	place_people(store);
	assert_int_equal(store_account_add(
				 store, &(struct store_account){.id = "c", .name = "team-a"}, &err),
		-EEXIST);
	assert_string_equal(err.msg, "there is an account 'team-a' already");
	assert_int_equal(store_account_get(store, "b", on_account, &out, &err), 0);
	assert_told(&out, "b team-b 10 5 7\n");
	assert_int_equal(store_account_get(store, "c", on_account, &out, &err), -ENOENT);
	assert_int_equal(store_account_list(store, NULL, 1, on_account, &out, &err), 1);
	assert_told(&out, "a team-a 10 5 7\n");
	assert_int_equal(store_account_list(store, "a", 1000, on_account, &out, &err), 1);
	assert_told(&out, "b team-b 10 5 7\n");
	assert_int_equal(store_account_list(store, NULL, 0, on_account, &out, &err), -EINVAL);
	assert_int_equal(store_account_list(store, NULL, 1001, on_account, &out, &err), -EINVAL);
	assert_string_equal(err.msg, "limit 1001: want 1 to 1000");
	assert_int_equal(store_check(store, &err), 0);
}

static void test_keys(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_key key = {.id = "K2",
		.account = "a",
		.hash = "h2",
		.prefix = "p",
		.name = "second",
		.role = "auditor",
		.rate_limit = 3,
		.created_ms = 50};

	place_people(store);
	assert_good(store_key_add(store, &key, &err));
	assert_int_equal(store_key_add(store, &key, &err), -EEXIST);
	key.id = "K3";
	assert_int_equal(store_key_add(store, &key, &err), -EEXIST); /* the hash */
	key.hash = "h3";
	key.account = "nobody";
	assert_int_equal(store_key_add(store, &key, &err), -EEXIST);
	key.role = "root";
	assert_int_equal(store_key_add(store, &key, &err), -EINVAL);
	assert_string_equal(err.msg, "role 'root': want admin, member or auditor");

	assert_int_equal(store_key_find(store, "h2", on_key, &out, &err), 0);
	assert_told(&out, "K2 a p second auditor 3 50 0 0 -\n");
	assert_int_equal(store_key_touch(store, "a", "K2", 70, &err), 0);
	assert_int_equal(store_key_touch(store, "a", "K2", 60, &err), 0); /* comes late */
	assert_int_equal(store_key_touch(store, "b", "K2", 90, &err), 0); /* not theirs */
	assert_int_equal(store_key_get(store, "a", "K2", on_key, &out, &err), 0);
	assert_told(&out, "K2 a p second auditor 3 50 70 0 -\n");
	assert_int_equal(store_key_get(store, "b", "K2", on_key, &out, &err), -ENOENT);
	assert_int_equal(store_key_get(store, "a", "K9", on_key, &out, &err), -ENOENT);
	assert_int_equal(store_key_revoke(store, "b", "K2", 99, &err), -ENOENT);
	assert_int_equal(store_key_revoke(store, "a", "K2", 99, &err), 0);
	assert_int_equal(store_key_revoke(store, "a", "K2", 100, &err), -ENOENT);
	assert_int_equal(store_key_get(store, "a", "K2", on_key, &out, &err), -ENOENT);
	assert_int_equal(store_key_find(store, "h2", on_key, &out, &err), -ENOENT);
	/* Capital letters sort before small ones, in any language. */
	assert_int_equal(store_key_list(store, "a", NULL, 10, on_key, &out, &err), 2);
	assert_told(
		&out, "K2 a p second auditor 3 50 70 99 -\nk-a a clo_ab first admin 100 8 0 0 -\n");
	assert_int_equal(store_key_list(store, "a", "K2", 10, on_key, &out, &err), 1);
	assert_told(&out, "k-a a clo_ab first admin 100 8 0 0 -\n");
}

static int refuse_to_tell(void *arg, struct err *err)
{
	return err_set(err, -EPIPE, "nobody listens");
}

static int tell(void *arg, struct err *err)
{
	*(int *)arg += 1;
	return 0;
}

/* What could not be told is not kept. */
static void test_the_first_key(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_key key = {.id = "K1",
		.account = "c",
		.hash = "h1",
		.prefix = "p",
		.name = "first",
		.role = "admin",
		.created_ms = 50};
	int n = 0;

	assert_int_equal(store_key_add_first(store, &key, tell, &n, &err), -ENOENT);
	assert_good(store_account_add(
		store, &(struct store_account){.id = "c", .name = "c", .created_ms = 1}, &err));
	assert_int_equal(store_key_add_first(store, &key, refuse_to_tell, NULL, &err), -EPIPE);
	assert_string_equal(err.msg, "nobody listens");
	assert_int_equal(store_key_list(store, "c", NULL, 10, on_key, &out, &err), 0);
	assert_int_equal(store_key_add_first(store, &key, tell, &n, &err), 1);
	assert_int_equal(n, 1);
	key.id = "K2";
	key.hash = "h2";
	assert_int_equal(store_key_add_first(store, &key, tell, &n, &err), 0);
	assert_int_equal(store_key_revoke(store, "c", "K1", 99, &err), 0);
	assert_int_equal(store_key_add_first(store, &key, tell, &n, &err), 0); /* it had one */
	assert_int_equal(n, 1);
	assert_int_equal(store_key_list(store, "c", NULL, 10, on_key, &out, &err), 1);
	assert_told(&out, "K1 c p first admin 0 50 0 99 -\n");
	key.role = "root";
	assert_int_equal(store_key_add_first(store, &key, tell, &n, &err), -EINVAL);
}

static int ended(
	struct store *store, const char *host, int64_t before_ms, int64_t after_ms, struct str *out)
{
	const struct store_ended_query q = {.place = host,
		.before_ms = before_ms,
		.after_ms = after_ms,
		.after_id = "sb-2",
		.limit = 10};

	return store_sandbox_ended(store, &q, on_sandbox, out, NULL);
}

static void test_sandboxes(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_label labels[] = {{"team", "red \"1\""}, {"x", "y"}};
	struct store_sandbox sb = {.id = "sb-2",
		.account = "a",
		.name = "two",
		.state = "running",
		.place = "/r/2",
		.labels = labels,
		.n_labels = 2,
		.created_ms = 20};
	struct store_sandbox_query all = {.account = "a", .limit = 10};

	place_people(store);
	assert_int_equal(store_sandbox_put(store, &sb, &err), 1);
	sb.account = "b";
	assert_int_equal(store_sandbox_put(store, &sb, &err), -EEXIST);
	assert_string_equal(err.msg, "the sandbox is another account's");
	sb.account = "zz";
	sb.id = "sb-3";
	assert_int_equal(store_sandbox_put(store, &sb, &err), -EEXIST);
	assert_string_equal(err.msg, "there is no such account");
	assert_int_equal(store_sandbox_get(store, "a", "sb-2", on_sandbox, &out, &err), 0);
	/* n's are taken in order, but not told as a promise without gaps. */
	assert_non_null(strstr(
		out.p, " sb-2 a two running /r/2 {\"team\":\"red \\\"1\\\"\",\"x\":\"y\"} 20 0\n"));
	str_done(&out);
	assert_int_equal(store_sandbox_get(store, "b", "sb-2", on_sandbox, &out, &err), -ENOENT);
	assert_int_equal(store_sandbox_list(store, &all, on_sandbox, &out, &err), 2);
	assert_true(strstr(out.p, "sb-2") < strstr(out.p, "sb-a"));
	all.before = strtoll(out.p, NULL, 10);
	str_done(&out);
	assert_int_equal(store_sandbox_list(store, &all, on_sandbox, &out, &err), 1);
	assert_non_null(strstr(out.p, " sb-a a box running /records/1 {} 9 0\n"));
	str_done(&out);
	all = (struct store_sandbox_query){
		.account = "a", .limit = 10, .label_name = "team", .label_value = "red \"1\""};
	assert_int_equal(store_sandbox_list(store, &all, on_sandbox, &out, &err), 1);
	all.account = "b";
	assert_int_equal(store_sandbox_list(store, &all, on_sandbox, &out, &err), 0);

	sb.id = "sb-2";
	sb.account = "a";
	sb.state = "ended";
	sb.ended_ms = 400;
	sb.n_labels = 1;
	sb.labels = labels + 1;
	assert_int_equal(store_sandbox_put(store, &sb, &err), 1);
	all = (struct store_sandbox_query){
		.account = "a", .limit = 10, .label_name = "team", .label_value = "red \"1\""};
	assert_int_equal(store_sandbox_list(store, &all, on_sandbox, &out, &err), 0);
	all = (struct store_sandbox_query){.account = "a", .limit = 10, .state = "ended"};
	str_done(&out);
	assert_int_equal(store_sandbox_list(store, &all, on_sandbox, &out, &err), 1);
	assert_non_null(strstr(out.p, " sb-2 a two ended /r/2 {\"x\":\"y\"} 20 400\n"));
	str_done(&out);
	assert_int_equal(store_sandbox_count(store, "a", "running", &err), 1);
	assert_int_equal(ended(store, "/r/2", 400, 0, &out), 0);
	assert_int_equal(ended(store, "/r/1", 401, 0, &out), 0);
	assert_int_equal(ended(store, "/r/2", 401, 0, &out), 1);
	assert_int_equal(ended(store, "/r/2", 401, 400, &out), 0); /* behind that one */
	assert_int_equal(ended(store, "/r/2", 401, 399, &out), 1);
	str_done(&out);
	assert_int_equal(store_sandbox_of_place(store, "/r/2", 0, 10, on_sandbox, &out, &err), 1);
	assert_int_equal(store_sandbox_of_place(store, "/r/2", strtoll(out.p, NULL, 10), 10,
				 on_sandbox, &out, &err),
		0);
	str_done(&out);
}

static void test_events(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_event life[] = {
		{.sandbox = "sb-a",
			.seq = 1,
			.at_ms = 10,
			.kind = "sandbox.created",
			.json = "{1}"},
		{.sandbox = "sb-a", .seq = 2, .at_ms = 20, .kind = "sandbox.paused", .json = "{2}"},
		{.sandbox = "none", .seq = 1, .at_ms = 20, .kind = "sandbox.paused", .json = "{3}"},
	};
	struct store_query q = {.account = "a", .sandbox = "sb-a", .limit = 10};

	place_people(store);
	assert_int_equal(store_lifecycle_add(store, life, 3, &err), 2);
	assert_int_equal(store_lifecycle_add(store, life, 2, &err), 0);
	assert_int_equal(store_lifecycle_page(store, &q, on_event, &out, &err), 2);
	assert_told(&out, "a sb-a 1 10 sandbox.created {1}\na sb-a 2 20 sandbox.paused {2}\n");
	q.account = "b";
	assert_int_equal(store_lifecycle_page(store, &q, on_event, &out, &err), 0);
}

static void test_audit(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_event audit[] = {
		{.account = "a", .place = "p", .seq = 5, .at_ms = 10, .kind = "k5", .json = "{5}"},
		{.account = "b", .place = "p", .seq = 6, .at_ms = 20, .kind = "k6", .json = "{6}"},
		{.account = "a", .place = "p", .seq = 4, .at_ms = 9, .kind = "k4", .json = "{4}"},
		{.account = "a", .place = "p", .seq = 8, .at_ms = 30, .kind = "k8", .json = "{8}"},
		/* Another host's journal has the same numbers. */
		{.account = "a", .place = "q", .seq = 5, .at_ms = 11, .kind = "q5", .json = "{}"},
	};
	struct store_query q = {.account = "a", .limit = 10, .is_newest_first = true};

	place_people(store);
	assert_int_equal(store_audit_hole(store, "p", &err), 1);
	assert_int_equal(store_audit_add(store, audit, 3, &err), 3);
	assert_int_equal(store_audit_add(store, audit + 1, 2, &err), 0);
	assert_int_equal(store_audit_hole(store, "p", &err), 7);
	assert_int_equal(store_audit_add(store, audit + 3, 2, &err), 2);
	assert_int_equal(store_audit_hole(store, "p", &err), 7);
	assert_int_equal(store_audit_hole(store, "q", &err), 6);
	assert_int_equal(store_audit_page(store, &q, on_event, &out, &err), 4);
	assert_told(&out, "a  5 11 q5 {}\na  8 30 k8 {8}\na  4 9 k4 {4}\na  5 10 k5 {5}\n");
	q.from_ms = 10;
	q.to_ms = 11;
	assert_int_equal(store_audit_page(store, &q, on_event, &out, &err), 1);
	assert_told(&out, "a  5 10 k5 {5}\n");
	/* One that somebody changed is put right, where it stands. */
	audit[0].json = "{50}";
	assert_int_equal(store_audit_add(store, audit, 3, &err), 1);
	assert_int_equal(store_audit_page(store, &q, on_event, &out, &err), 1);
	assert_told(&out, "a  5 10 k5 {50}\n");
	q.q = "x";
	assert_int_equal(store_audit_page(store, &q, on_event, &out, &err), -EINVAL);
}

static void test_objects(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_object o = {
		.account = "a", .kind = "secret", .name = "KEY", .json = "{1}", .changed_ms = 1};

	place_people(store);
	assert_int_equal(store_object_put(store, &o, &err), 0);
	o.json = "{2}";
	o.changed_ms = 2;
	assert_int_equal(store_object_put(store, &o, &err), 0);
	o.name = "key";
	assert_int_equal(store_object_put(store, &o, &err), 0);
	o.sandbox = "sb-a";
	assert_int_equal(store_object_put(store, &o, &err), 0);
	o.sandbox = "sb-b"; /* another account's */
	assert_int_equal(store_object_put(store, &o, &err), -ENOENT);
	o = (struct store_object){.account = "a", .kind = "secret"};
	assert_int_equal(store_object_list(store, &o, 10, on_object, &out, &err), 2);
	assert_told(&out, "a secret - KEY 2 {2}\na secret - key 2 {2}\n");
	o.name = "KEY";
	assert_int_equal(store_object_list(store, &o, 10, on_object, &out, &err), 1);
	assert_told(&out, "a secret - key 2 {2}\n");
	o.sandbox = "sb-a";
	assert_int_equal(store_object_get(store, &o, on_object, &out, &err), -ENOENT);
	assert_string_equal(err.msg, "there is no such secret");
	o.name = "key";
	assert_int_equal(store_object_get(store, &o, on_object, &out, &err), 0);
	assert_told(&out, "a secret sb-a key 2 {2}\n");
	o.json = "{3}";
	assert_int_equal(store_object_change(store, &o, &err), 0);
	assert_int_equal(store_object_get(store, &o, on_object, &out, &err), 0);
	assert_told(&out, "a secret sb-a key 0 {3}\n");
	assert_int_equal(store_object_remove(store, &o, &err), 0);
	assert_int_equal(store_object_remove(store, &o, &err), -ENOENT);
	assert_int_equal(store_object_change(store, &o, &err), -ENOENT);
	assert_int_equal(store_object_get(store, &o, on_object, &out, &err), -ENOENT);
}

/* By their names alone, of all sandboxes of an account, and what a sandbox that has ended leaves. */
static void test_objects_of_sandboxes(void **state)
{
	static const struct store_object objects[] = {
		{.account = "a",
			.kind = "preview",
			.name = "pv2",
			.json = "{2}",
			.sandbox = "sb-a"},
		{.account = "a", .kind = "preview", .name = "pv3", .json = "{3}"},
		{.account = "b",
			.kind = "preview",
			.name = "pv1",
			.json = "{1}",
			.sandbox = "sb-b"},
		{.account = "b", .kind = "other", .name = "pv2", .json = "{4}", .sandbox = "sb-b"},
	};
	struct store *store = *state;
	struct store_object o = {.account = "a", .kind = "preview", .sandbox = "not read"};
	struct store_sandbox ended = {
		.id = "sb-b", .account = "b", .state = "ended", .ended_ms = 7};
	struct str out = {0};
	struct err err = {0};

	place_people(store);
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		assert_int_equal(store_object_put(store, &objects[i], &err), 0);
	assert_int_equal(store_object_list_all(store, &o, 10, on_object, &out, &err), 2);
	assert_told(&out, "a preview sb-a pv2 0 {2}\na preview - pv3 0 {3}\n");
	o.name = "pv2";
	assert_int_equal(store_object_list_all(store, &o, 1, on_object, &out, &err), 1);
	assert_told(&out, "a preview - pv3 0 {3}\n");
	assert_int_equal(store_object_find(store, "preview", "pv1", on_object, &out, &err), 0);
	assert_told(&out, "b preview sb-b pv1 0 {1}\n");
	assert_int_equal(store_object_find(store, "other", "pv1", on_object, &out, &err), -ENOENT);
	assert_string_equal(err.msg, "there is no such other");
	assert_int_equal(store_object_ended(store, "preview", 10, on_object, &out, &err), 0);
	assert_int_equal(store_sandbox_put(store, &ended, &err), 1);
	assert_int_equal(store_object_ended(store, "preview", 10, on_object, &out, &err), 1);
	assert_told(&out, "b preview sb-b pv1 0 {1}\n");
	o.json = "{";
	assert_int_equal(store_object_with(store, &o, 2, on_object, &out, &err), 2);
	assert_told(&out, "a preview sb-a pv2 0 {2}\na preview - pv3 0 {3}\n");
	o.json = "1}";
	assert_int_equal(store_object_with(store, &o, 10, on_object, &out, &err), 1);
	assert_told(&out, "b preview sb-b pv1 0 {1}\n");
	o.json = "4";
	assert_int_equal(store_object_with(store, &o, 10, on_object, &out, &err), 0);
	assert_int_equal(store_object_with(store, &o, 0, on_object, &out, &err), -EINVAL);
}

static void test_deliveries(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_delivery d[] = {
		{.id = "d1",
			.account = "a",
			.webhook = "w",
			.due_ms = 100,
			.created_ms = 100,
			.json = "{1}"},
		{.id = "d2",
			.account = "a",
			.webhook = "w",
			.due_ms = 50,
			.created_ms = 100,
			.json = "{2}"},
		{.id = "d3",
			.account = "a",
			.webhook = "w",
			.due_ms = 500,
			.created_ms = 100,
			.json = "{3}"},
	};
	struct store_delivery end = {.id = "d2", .attempt = 1, .state = "sent", .result = "200"};
	struct store_delivery other = {.id = "d2", .account = "b", .webhook = "w", .due_ms = 7};

	place_people(store);
	assert_int_equal(store_delivery_add(store, d, 3, &err), 3);
	assert_int_equal(store_delivery_add(store, d, 3, &err), 0);
	assert_int_equal(
		store_delivery_claim(store, CLAIM_OF(60, 30, "", 10), on_delivery, &out, &err), 1);
	assert_told(&out, "d2 waiting 1 90 - {2}\n");
	assert_int_equal(
		store_delivery_claim(store, CLAIM_OF(60, 30, "", 10), on_delivery, &out, &err), 0);
	assert_int_equal(
		store_delivery_claim(store, CLAIM_OF(90, 30, "", 10), on_delivery, &out, &err),
		1); /* lease over */
	str_done(&out);
	assert_int_equal(store_delivery_finish(store, &end, &err), -ESTALE);
	end.attempt = 2;
	assert_int_equal(store_delivery_finish(store, &end, &err), 0);
	end.state = "lost";
	assert_int_equal(store_delivery_finish(store, &end, &err), -EINVAL);
	assert_int_equal(
		store_delivery_claim(store, CLAIM_OF(1000, 30, "v w ", 1), on_delivery, &out, &err),
		0);
	assert_int_equal(
		store_delivery_claim(store, CLAIM_OF(1000, 30, "v", 1), on_delivery, &out, &err),
		1);
	assert_told(&out, "d1 waiting 1 1030 - {1}\n");
	assert_int_equal(store_delivery_again(store, &other, &err), -ENOENT);
	other.account = "a";
	other.webhook = "v";
	assert_int_equal(store_delivery_again(store, &other, &err), -ENOENT);
	other.webhook = "w";
	assert_int_equal(store_delivery_again(store, &other, &err), 0);
	assert_int_equal(store_delivery_again(store, &other, &err), -EBUSY);
	assert_int_equal(
		store_delivery_page(store, &(struct store_delivery){.account = "a", .webhook = "w"},
			2, on_delivery, &out, &err),
		2);
	assert_told(&out, "d3 waiting 0 500 - {3}\nd2 waiting 2 7 200 {2}\n");
	assert_int_equal(
		store_delivery_page(store, &(struct store_delivery){.account = "b", .webhook = "w"},
			2, on_delivery, &out, &err),
		0);
}

static void test_requests(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_request q = {.account = "a",
		.name = "idem",
		.request_hash = "r1",
		.started_ms = 100,
		.expires_ms = 200};
	struct store_request other = q, late;

	place_people(store);
	assert_int_equal(store_request_begin(store, &q, on_request, &out, &err), STORE_ONCE_NEW);
	other.started_ms = 110;
	assert_int_equal(
		store_request_begin(store, &other, on_request, &out, &err), STORE_ONCE_BUSY);
	other.request_hash = "r2";
	assert_int_equal(
		store_request_begin(store, &other, on_request, &out, &err), STORE_ONCE_MISMATCH);
	other.account = "b"; /* names are an account's own */
	assert_int_equal(
		store_request_begin(store, &other, on_request, &out, &err), STORE_ONCE_NEW);
	q.status = 201;
	q.answer = "{\"id\":\"sb\"}";
	q.expires_ms = 1000;
	assert_int_equal(store_request_finish(store, &q, &err), 0);
	assert_int_equal(store_request_finish(store, &q, &err), -ESTALE);
	late = (struct store_request){.account = "a",
		.name = "idem",
		.request_hash = "r1",
		.started_ms = 999,
		.expires_ms = 2000};
	assert_int_equal(
		store_request_begin(store, &late, on_request, &out, &err), STORE_ONCE_DONE);
	assert_told(&out, "idem 201 {\"id\":\"sb\"}\n");
	late.started_ms = 1000;
	assert_int_equal(store_request_begin(store, &late, on_request, &out, &err), STORE_ONCE_NEW);
	assert_int_equal(store_request_finish(store, &q, &err), -ESTALE); /* no longer its own */
	assert_int_equal(store_request_drop(store, &late, &err), 0);
	late.started_ms = 1001;
	assert_int_equal(store_request_begin(store, &late, on_request, &out, &err), STORE_ONCE_NEW);
}

static void test_tokens(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_token t = {
		.hash = "t1", .sandbox = "sb-a", .api_key = "k-a", .expires_ms = 1000};

	place_people(store);
	assert_int_equal(store_token_add(store, &t, &err), 0);
	assert_int_equal(store_token_use(store, "t1", "sb-b", 10, on_key, &out, &err), -ENOENT);
	assert_int_equal(store_token_use(store, "t2", "sb-a", 10, on_key, &out, &err), -ENOENT);
	assert_int_equal(store_token_use(store, "t1", "sb-a", 1000, on_key, &out, &err), -ENOENT);
	assert_int_equal(store_token_use(store, "t1", "sb-a", 999, on_key, &out, &err), 0);
	assert_told(&out, "k-a a clo_ab first admin 100 8 0 0 -\n");
	assert_int_equal(store_token_use(store, "t1", "sb-a", 999, on_key, &out, &err), -ENOENT);
	t.hash = "t3";
	t.sandbox = "sb-b"; /* not of the key's account */
	assert_int_equal(store_token_add(store, &t, &err), -ENOENT);
	t.sandbox = "sb-a";
	assert_int_equal(store_token_add(store, &t, &err), 0);
	assert_int_equal(store_key_revoke(store, "a", "k-a", 5, &err), 0);
	assert_int_equal(store_token_use(store, "t3", "sb-a", 10, on_key, &out, &err), -ENOENT);
	assert_int_equal(store_token_add(store, &t, &err), -ENOENT);
	assert_null(out.p);
}

static void test_rates(void **state)
{
	static const struct {
		int second, want, granted;
	} cases[] = {
		{100, 4, 4},
		{100, 4, 4},
		{100, 4, 2},
		{100, 1, 0},
		{99, 1, 0},
		{101, 50, 10},
		{100, 1, 0},
		{101, 1, 0},
		{102, 3, 3},
		{50, 3, 3} /* the clock was set back */,
		{50, 9, 7},
	};
	struct store *store = *state;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			store_rate_take(store, "k", cases[i].second, cases[i].want, 10, &err),
			cases[i].granted);
	assert_int_equal(store_rate_take(store, "other", 50, 1, 10, &err), 1);
	assert_int_equal(store_rate_take(store, "k", 60, 0, 10, &err), -EINVAL);
}

static void test_metrics(void **state)
{
	struct store *store = *state;
	struct str out = {0};
	struct err err = {0};
	struct store_metric m[] = {
		{"sb-a", "{1}", 10}, {"sb-a", "{2}", 20}, {"none", "{}", 10}, {"sb-a", "{3}", 30}};

	place_people(store);
	assert_int_equal(store_metric_add(store, m, 4, &err), 3);
	assert_int_equal(store_metric_add(store, m, 1, &err), 0);
	assert_int_equal(store_metric_page(store, SAMPLES_OF(10, 0), on_metric, &out, &err), 2);
	assert_told(&out, "20 {2}\n30 {3}\n");
	assert_int_equal(store_metric_page(store, SAMPLES_OF(0, 20), on_metric, &out, &err), 2);
	assert_told(&out, "10 {1}\n20 {2}\n");
}

static void test_expire(void **state)
{
	struct store *store = *state;
	struct err err = {0};
	struct str out = {0};
	struct store_expiry e = {.now_ms = 1000,
		.audit_before_ms = 20,
		.metrics_before_ms = 20,
		.deliveries_before_ms = 20};
	struct store_event audit[] = {
		{.account = "a", .seq = 1, .at_ms = 19, .kind = "k", .json = "{}"},
		{.account = "a", .seq = 2, .at_ms = 20, .kind = "k", .json = "{}"}};
	struct store_metric m[] = {{"sb-a", "{1}", 19}, {"sb-a", "{2}", 20}};
	struct store_delivery d = {.id = "d",
		.account = "a",
		.webhook = "w",
		.due_ms = 1,
		.created_ms = 1,
		.json = ""};

	place_people(store);
	assert_good(store_audit_add(store, audit, 2, &err));
	assert_good(store_metric_add(store, m, 2, &err));
	assert_good(store_delivery_add(store, &d, 1, &err)); /* still waits: stays */
	assert_good(store_token_add(store, &(struct store_token){"t1", "sb-a", "k-a", 1000}, &err));
	assert_good(store_token_add(store, &(struct store_token){"t2", "sb-a", "k-a", 1001}, &err));
	assert_good(store_request_begin(store,
		&(struct store_request){.account = "a", .name = "n", .expires_ms = 1000},
		on_request, &out, &err));
	assert_good(store_rate_take(store, "old", -100, 1, 1, &err));
	assert_int_equal(store_expire(store, &e, &err), 5);
	assert_int_equal(store_expire(store, &e, &err), 0);
	assert_int_equal(store_token_use(store, "t2", "sb-a", 5, on_key, &out, &err), 0);
	str_done(&out);
	assert_int_equal(store_metric_page(store, SAMPLES_OF(0, 0), on_metric, &out, &err), 1);
	assert_told(&out, "20 {2}\n");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_setup, place_teardown)

int contract_run(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_accounts),
		TEST(test_keys),
		TEST(test_the_first_key),
		TEST(test_sandboxes),
		TEST(test_events),
		TEST(test_audit),
		TEST(test_objects),
		TEST(test_objects_of_sandboxes),
		TEST(test_deliveries),
		TEST(test_requests),
		TEST(test_tokens),
		TEST(test_rates),
		TEST(test_metrics),
		TEST(test_expire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
