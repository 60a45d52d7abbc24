/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of an account: a value goes in and is told to nobody, not in an answer, a log, a record or the audit log. Members
 * use them in specs, for the hosts that an admin said (network_use.c). */
#include <errno.h>
#include <string.h>

#include "server/api.h"
#include "server/launcher_ask.h"
#include "server/network_objects.h"
#include "server/page.h"
#include "spec/spec_network_parse.h"
#include "spec/spec_stand_in.h"
#include "util/mem.h"

#define NAME_LONGEST 63 /* it is a cursor, too */

static void write_secret(struct str *out, const char *name, const json_t *object)
{
	const json_t *hosts = json_object_get(object, "hosts");
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_ktext(&j, "name", name);
	jsonw_key(&j, "hosts");
	jsonw_array(&j);
	for (size_t i = 0; i < json_array_size(hosts); i++)
		jsonw_text(&j, json_string_value(json_array_get(hosts, i)));
	jsonw_array_end(&j);
	jsonw_kbool(&j, "plain", json_is_true(json_object_get(object, "plain")));
	jsonw_ktext(&j, "set_at", json_string_value(json_object_get(object, "set_at")));
	jsonw_object_end(&j);
}

/* As a spec of a network that has it would be checked. */
static int check_hosts(const char *name, json_t *hosts, struct err *err)
{
	json_t *probe = json_pack("{s:s,s:b,s:[{s:s,s:O}]}", "net", "open", "control_plane", 1,
		"secrets", "name", name, "hosts", hosts);
	scoped_mem char *text = json_dumps(probe, JSON_COMPACT);
	struct spec_network net;
	int r;

	json_decref(probe);
	spec_network_init(&net);
	r = text ? spec_network_read(&net, slice_of(text), err)
	         : err_set(err, -EINVAL, "member 'hosts': want a list of hosts");
	if (r == 0)
		r = spec_network_check(&net, err);
	spec_network_done(&net);
	return r;
}

/* No sentence shows it. */
static int check_value(const char *value, struct err *err)
{
	scoped_str struct str stand_in = {0};

	return spec_stand_in_make(value, &stand_in, err);
}

struct wish {
	const char *name, *value;
	json_t *hosts; /* borrowed */
	bool plain;
};

static int read_wish(const struct call *call, struct wish *wish, struct err *err)
{
	static const char *const names[] = {"name", "value", "hosts", "plain", NULL};
	int r = call_check_body(call, names, err);

	if (r == 0)
		r = call_text(call, "name", &wish->name, err);
	if (r == 0 && (!wish->name || !spec_network_is_variable(wish->name) ||
			      strlen(wish->name) > NAME_LONGEST))
		r = err_set(err, -EINVAL,
			"member 'name': want the name of a variable, of at most %d bytes",
			NAME_LONGEST);
	if (r == 0)
		r = call_text(call, "value", &wish->value, err);
	if (r == 0 && !wish->value)
		r = err_set(err, -EINVAL, "member 'value': want a text");
	if (r == 0)
		r = call_bool(call, "plain", &wish->plain, err);
	wish->hosts = json_object_get(call->body, "hosts");
	if (r == 0 && (!json_is_array(wish->hosts) || json_array_size(wish->hosts) == 0))
		r = err_set(err, -EINVAL, "member 'hosts': want a list of hosts, not empty");
	if (r == 0)
		r = check_hosts(wish->name, wish->hosts, err);
	if (r == 0 && check_value(wish->value, err) < 0)
		r = err_wrap(err, -EINVAL, "member 'value'");
	return r;
}

/* One of this name is replaced: what runs keeps the value that it began with. */
int api_secrets_create(struct call *call, struct err *err)
{
	struct wish wish = {0};
	json_t *object = NULL;
	int r = read_wish(call, &wish, err);

	if (r == 0)
		r = network_objects_seal_secret(
			call, wish.name, wish.hosts, wish.plain, wish.value, &object, err);
	if (r == 0)
		r = launcher_ask_audit(call, "secret.set", wish.name, NULL, NULL, err);
	if (r == 0)
		r = network_objects_put(call,
			&(struct network_object){NETWORK_OBJECTS_SECRET, NULL, wish.name}, object,
			err);
	if (r == 0) {
		call->status = 201;
		write_secret(&call->out, wish.name, object);
	}
	json_decref(object);
	return r;
}

static int on_secret(const struct store_object *row, void *arg)
{
	json_t *object = json_loads(row->json, 0, NULL);
	scoped_str struct str json = {0};

	write_secret(&json, row->name, object);
	json_decref(object);
	page_add_named(arg, str_slice(&json), row->name);
	return 0;
}

int api_secrets_list(struct call *call, struct err *err)
{
	static const char *const names[] = {"limit", "cursor", NULL};
	struct store_object which = {
		.account = call->caller.account, .kind = NETWORK_OBJECTS_SECRET};
	struct page page = {0};
	int r = call_check_query(call, names, err);

	if (r == 0)
		r = page_begin(&page, call, false, err);
	if (r < 0)
		return r;
	which.name = page.after && *page.after ? page.after : NULL;
	r = store_object_list(call->server->store, &which, (int)page.limit, on_secret, &page, err);
	if (r < 0)
		return r;
	page_end(&page);
	return 0;
}

int api_secrets_remove(struct call *call, struct err *err)
{
	const char *name = call->params[0];
	struct network_object which = {NETWORK_OBJECTS_SECRET, NULL, name};
	json_t *object = NULL;
	int r = network_objects_get(call, &which, &object, err);

	json_decref(object);
	if (r == 0)
		r = launcher_ask_audit(call, "secret.removed", name, NULL, NULL, err);
	return r < 0 ? r : network_objects_remove(call, &which, err);
}
