/* SPDX-License-Identifier: Apache-2.0 */
/* Network rules of living sandboxes and of those to come. What an account may name is checked here
 * for a good sentence, and by the launcher because it counts: cli/create_within.h. */
#include <errno.h>
#include <string.h>

#include "control/client.h"
#include "server/api.h"
#include "server/launcher_ask.h"
#include "server/network_objects.h"
#include "spec/spec_network.h"
#include "spec/spec_rule.h"
#include "spec/spec_within.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/program.h"

#define DETAIL_MAX 900 /* bytes of the audit log's line */

/* ---- rules as they are asked for ---- */

/* What is behind it is read by who makes a sandbox; a name that nobody knows would let none be made. */
static int check_set(const char *name, struct err *err)
{
	static const char *const of_tools[] = {"@npm", "@pip", "@apt"};
	size_t len = strspn(name + 1, "abcdefghijklmnopqrstuvwxyz0123456789-");
	scoped_mem char *file = mem_printf("sets/%s", name + 1);
	scoped_str struct str path = {0};

	for (size_t i = 0; i < sizeof(of_tools) / sizeof(of_tools[0]); i++)
		if (strcmp(name, of_tools[i]) == 0)
			return 0;
	if (len > 0 && !name[len + 1] && program_find_data(file, &path, NULL) == 0)
		return 0;
	return err_set(err, -EINVAL, "there is no set '%s'", name);
}

static int check_rule(const char *text, struct err *err)
{
	struct spec_rule rule;
	int r;

	if (*text == '@')
		return check_set(text, err);
	r = spec_rule_parse(text, &rule, err);
	if (r == 0)
		spec_rule_done(&rule);
	return r;
}

static int check_list(const struct spec_words *words, const char *key, struct err *err)
{
	for (size_t i = 0; i < words->n; i++) {
		int r = check_rule(words->items[i], err);

		if (r < 0)
			return err_wrap(err, r, "member '%s'", key);
	}
	return 0;
}

/* What is null is as if it were not there. */
static void drop_nulls(json_t *object)
{
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe(object, next, key, value) if (json_is_null(value))
		json_object_del(object, key);
}

/* The body as rules: net must be there, since what it is without the word depends on who reads it. */
static int read_rules(struct call *call, struct spec_network *net, struct err *err)
{
	static const char *const names[] = {"net", "allow", "deny", NULL};
	scoped_mem char *text = NULL;
	int r = call_check_body(call, names, err);

	drop_nulls(call->body);
	text = json_dumps(call->body, JSON_COMPACT);
	if (r == 0 && !json_is_string(json_object_get(call->body, "net")))
		r = err_set(err, -EINVAL, "member 'net': want open, allow or none");
	if (r == 0)
		r = spec_network_read(net, slice_of(text), err);
	if (r == 0)
		r = check_list(&net->allow, "allow", err);
	if (r == 0)
		r = check_list(&net->deny, "deny", err);
	if (r == 0 && !network_objects_may_private(call))
		r = spec_within_network(net, err);
	return r;
}

static void add_words(struct jsonw *j, const char *key, const struct spec_words *words)
{
	jsonw_key(j, key);
	jsonw_array(j);
	for (size_t i = 0; i < words->n; i++)
		jsonw_text(j, words->items[i]);
	jsonw_array_end(j);
}

static void write_rules(struct str *out, const struct spec_network *net)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_ktext(&j, "net", spec_net_name(net->net));
	add_words(&j, "allow", &net->allow);
	add_words(&j, "deny", &net->deny);
	jsonw_object_end(&j);
}

static void describe_list(struct str *out, const char *key, const struct spec_words *words)
{
	for (size_t i = 0; i < words->n && out->len < DETAIL_MAX; i++)
		str_printf(out, "%s%s", i ? ", " : key, words->items[i]);
}

static int audit_rules(
	struct call *call, const char *sandbox, const struct spec_network *net, struct err *err)
{
	scoped_str struct str detail = {0};

	str_printf(&detail, "net %s", spec_net_name(net->net));
	describe_list(&detail, "; allow ", &net->allow);
	describe_list(&detail, "; deny ", &net->deny);
	if (detail.len > DETAIL_MAX) {
		detail.p[DETAIL_MAX] = '\0';
		detail.len = DETAIL_MAX;
		str_printf(&detail, "... (%zu and %zu rules)", net->allow.n, net->deny.n);
	}
	return launcher_ask_audit(call, "network_rules.changed",
		sandbox ? sandbox : call->caller.account, sandbox, detail.p, err);
}

/* ---- of a living sandbox ---- */

static int answer_live(struct call *call, const char *id, struct err *err)
{
	static const char *const keys[] = {"net", "allow", "deny", "sets", "ask", "shadow"};
	scoped(client) struct client *client = NULL;
	json_t *answer = NULL, *rules, *network;
	scoped_mem char *text = NULL;
	int r = launcher_ask_client(call, id, &client, err);

	if (r == 0)
		r = client_ask(client, "net-rules", slice_of(""), &answer, err);
	if (r < 0)
		return r;
	network = json_object_get(answer, "network");
	rules = json_object();
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		json_object_set(rules, keys[i], json_object_get(network, keys[i]));
	text = json_dumps(rules, JSON_COMPACT);
	str_puts(&call->out, text ? text : "{}");
	json_decref(rules);
	json_decref(answer);
	return 0;
}

int api_networks_rules_get(struct call *call, struct err *err)
{
	const char *id = NULL;
	int r = api_sandbox_id(call, &id, NULL, err);

	return r < 0 ? r : answer_live(call, id, err);
}

int api_networks_rules_put(struct call *call, struct err *err)
{
	scoped(client) struct client *client = NULL;
	struct spec_network net;
	const char *id = NULL;
	int r = api_sandbox_id(call, &id, NULL, err);

	spec_network_init(&net);
	if (r == 0)
		r = launcher_ask_client(call, id, &client, err); /* whether it runs */
	if (r == 0)
		r = read_rules(call, &net, err);
	if (r == 0 && net.net == SPEC_NET_NONE)
		r = err_set(err, -EINVAL,
			"member 'net': a running sandbox is cut off by allow with no rules, not by "
			"none");
	if (r == 0)
		r = launcher_ask_net_rules(call, id, call->body, err);
	if (r == 0)
		r = audit_rules(call, id, &net, err);
	spec_network_done(&net);
	return r < 0 ? r : answer_live(call, id, err);
}

/* ---- of sandboxes to come ---- */

static const struct network_object own_rules = {NETWORK_OBJECTS_RULES, NULL, NETWORK_OBJECTS_OWN};

int api_networks_defaults_get(struct call *call, struct err *err)
{
	scoped_mem char *text = NULL;
	json_t *rules = NULL;
	int r = network_objects_get(call, &own_rules, &rules, err);

	if (r == -ENOENT) {
		str_puts(&call->out, "{\"net\":\"open\",\"allow\":[],\"deny\":[]}");
		return 0;
	}
	if (r < 0)
		return r;
	text = json_dumps(rules, JSON_COMPACT);
	str_puts(&call->out, text);
	json_decref(rules);
	return 0;
}

int api_networks_defaults_put(struct call *call, struct err *err)
{
	scoped_str struct str text = {0};
	struct spec_network net;
	json_t *rules = NULL;
	int r;

	spec_network_init(&net);
	r = read_rules(call, &net, err);
	write_rules(&text, &net);
	if (r == 0 && net.net == SPEC_NET_NONE && (net.allow.n || net.deny.n))
		r = err_set(err, -EINVAL, "member 'net': none has no rules");
	if (r == 0)
		r = audit_rules(call, NULL, &net, err);
	if (r == 0) {
		rules = json_loadb(text.p, text.len, 0, NULL);
		r = network_objects_put(call, &own_rules, rules, err);
	}
	if (r == 0)
		str_add(&call->out, text.p, text.len);
	json_decref(rules);
	spec_network_done(&net);
	return r;
}
