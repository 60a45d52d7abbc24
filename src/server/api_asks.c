/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that are held until somebody answers (`ask` in a spec): what waits, and the answers. The supervisor holds an
 * answer to what the sandbox's account may reach: see "narrow" in launcher/office.c. */
#include <errno.h>
#include <string.h>

#include "control/client.h"
#include "server/api.h"
#include "server/indexer.h"
#include "server/launcher_ask.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define SANDBOXES_MAX 256 /* whose questions are listed at once */

static int connect_to(struct call *call, const char **ret_id, struct client **ret, struct err *err)
{
	int r = api_sandbox_id(call, ret_id, NULL, err);

	return r < 0 ? r : launcher_ask_client(call, *ret_id, ret, err);
}

int api_asks_list(struct call *call, struct err *err)
{
	static const char *const none[] = {NULL};
	scoped(client) struct client *client = NULL;
	scoped_mem char *text = NULL;
	const char *id = NULL;
	json_t *answer = NULL;
	int r = call_check_query(call, none, err);

	if (r == 0)
		r = connect_to(call, &id, &client, err);
	if (r == 0)
		r = client_ask(client, "asks", slice_of(""), &answer, err);
	if (r == 0) {
		text = json_dumps(json_object_get(answer, "asks"), JSON_COMPACT);
		str_printf(&call->out, "{\"items\":%s,\"next_cursor\":null}", text ? text : "[]");
	}
	json_decref(answer);
	return r;
}

/* Those of one sandbox, each with its name. One that has ended meanwhile has none. */
static void add_asks(struct call *call, const char *id, json_t *items)
{
	scoped(client) struct client *client = NULL;
	json_t *answer = NULL, *list, *item;
	struct err err;
	size_t i;

	if (launcher_ask_client(call, id, &client, &err) < 0 ||
		client_ask(client, "asks", slice_of(""), &answer, &err) < 0)
		return;
	list = json_object_get(answer, "asks");
	json_array_foreach(list, i, item)
	{
		json_object_set_new(item, "sandbox", json_string(id));
		json_array_append(items, item);
	}
	json_decref(answer);
}

int api_asks_account(struct call *call, struct err *err)
{
	char ids[SANDBOXES_MAX][ID_SIZE];
	size_t n = indexer_holding(call->server->indexer, call->caller.account, ids, SANDBOXES_MAX);
	json_t *items = json_array();
	scoped_mem char *text = NULL;

	for (size_t i = 0; i < n; i++)
		add_asks(call, ids[i], items);
	text = json_dumps(items, JSON_COMPACT);
	str_printf(&call->out, "{\"items\":%s,\"next_cursor\":null}", text ? text : "[]");
	json_decref(items);
	return 0;
}

struct decision {
	int64_t ask;
	bool allow, always;
	const char *reason;
};

static int read_decision(const struct call *call, struct decision *d, struct err *err)
{
	static const char *const names[] = {"ask", "allow", "always", "reason", NULL};
	int r = call_check_body(call, names, err);

	if (r == 0)
		r = call_int(call, "ask", 1, INT64_MAX, 0, &d->ask, err);
	if (r == 0 && !d->ask)
		r = err_set(err, -EINVAL, "member 'ask': want the number of a question");
	if (r == 0 && !json_is_boolean(json_object_get(call->body, "allow")))
		r = err_set(err, -EINVAL, "member 'allow': want true or false");
	if (r == 0)
		r = call_bool(call, "allow", &d->allow, err);
	if (r == 0)
		r = call_bool(call, "always", &d->always, err);
	if (r == 0 && d->always && !d->allow)
		r = err_set(err, -EINVAL,
			"member 'always': it makes a rule of a yes; a no for good is a rule to "
			"deny");
	if (r == 0)
		r = call_text(call, "reason", &d->reason, err);
	return r;
}

/* What it is about, for the answer and the audit log. 0: it is not there. */
static int find_place(struct client *client, int64_t ask, json_t **ret_place, struct err *err)
{
	json_t *answer = NULL, *list;
	int r = client_ask(client, "asks", slice_of(""), &answer, err);

	list = json_object_get(answer, "asks");
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *place = json_array_get(list, i);

		if (json_integer_value(json_object_get(place, "ask")) == ask)
			*ret_place = json_incref(place);
	}
	json_decref(answer);
	if (r == 0 && !*ret_place)
		r = err_set(err, -ENOENT, "there is no such question (any more)");
	return r;
}

static int decide(
	struct call *call, struct client *client, const struct decision *d, struct err *err)
{
	scoped_str struct str body = {0};
	struct jsonw j = jsonw_to(&body);

	jsonw_object(&j);
	jsonw_kint(&j, "ask", d->ask);
	jsonw_kbool(&j, "allow", d->allow);
	jsonw_kbool(&j, "always", d->always);
	jsonw_ktext(&j, "actor", call->caller.actor);
	if (d->reason)
		jsonw_ktext(&j, "reason", d->reason);
	jsonw_object_end(&j);
	return client_ask(client, "decide", str_slice(&body), NULL, err);
}

static const char *text_of(const json_t *place, const char *key)
{
	return json_string_value(json_object_get(place, key));
}

static void write_answer(struct str *out, const struct decision *d, const json_t *place)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_kint(&j, "ask", d->ask);
	jsonw_ktext(&j, "answer", d->allow ? "allowed" : "refused");
	jsonw_kbool(&j, "always", d->always);
	jsonw_ktext(&j, "host", text_of(place, "host"));
	jsonw_ktext(&j, "address", text_of(place, "address"));
	jsonw_kint(&j, "port", json_integer_value(json_object_get(place, "port")));
	jsonw_ktext(&j, "protocol", text_of(place, "protocol"));
	jsonw_object_end(&j);
}

int api_asks_answer(struct call *call, struct err *err)
{
	scoped(client) struct client *client = NULL;
	scoped_mem char *detail = NULL;
	struct decision d = {0};
	const char *id = NULL;
	json_t *place = NULL;
	int r = connect_to(call, &id, &client, err);

	if (r == 0)
		r = read_decision(call, &d, err);
	if (r == 0)
		r = find_place(client, d.ask, &place, err);
	if (r == 0)
		r = decide(call, client, &d, err);
	if (r == 0) {
		const char *host = text_of(place, "host");

		detail = mem_printf("%s%s %.300s port %d", d.allow ? "allowed" : "refused",
			d.always ? " for good" : "", host ? host : text_of(place, "address"),
			(int)json_integer_value(json_object_get(place, "port")));
		write_answer(&call->out, &d, place);
		r = launcher_ask_audit(call, "ask.answered", id, id, detail, err);
	}
	json_decref(place);
	return r;
}
