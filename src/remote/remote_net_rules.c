/* SPDX-License-Identifier: Apache-2.0 */
/* net-rules: the server knows all rules of a sandbox as a whole, so they are read, changed and put back. */
#include <errno.h>
#include <string.h>

#include "cli/records.h"
#include "cli/verb_options.h"
#include "remote/remote_create.h"
#include "remote/remote_life.h"
#include "remote/remote_verbs.h"
#include "remote/request.h"
#include "util/mem.h"

#define RULES "network-rules"
#define PROXY "networks/upstream-proxy"

static bool changes_rules(const struct net_rules_options *o)
{
	return o->rules || o->net.allow.n || o->net.deny.n || o->remove.n || o->net.has_net;
}

static bool has(const json_t *list, const char *word)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_array_get(list, i)) ?: "", word) == 0)
			return true;
	return false;
}

/* What was there, unless all is new, less what is taken away, and then what is added. The caller's. */
static json_t *merge(const json_t *before, const struct spec_words *remove,
	const struct spec_words *add, bool is_new)
{
	json_t *after = json_array();

	for (size_t i = 0; !is_new && i < json_array_size(before); i++) {
		const char *rule = json_string_value(json_array_get(before, i));
		bool is_gone = false;

		for (size_t k = 0; rule && k < remove->n; k++)
			is_gone = is_gone || strcmp(remove->items[k], rule) == 0;
		if (rule && !is_gone)
			json_array_append_new(after, json_string(rule));
	}
	for (size_t i = 0; i < add->n; i++)
		if (!has(after, add->items[i]))
			json_array_append_new(after, json_string(add->items[i]));
	return after;
}

static int check_removed(const json_t *before, const struct spec_words *remove, struct err *err)
{
	for (size_t i = 0; i < remove->n; i++)
		if (!has(json_object_get(before, "allow"), remove->items[i]) &&
			!has(json_object_get(before, "deny"), remove->items[i]))
			return err_set(err, -ENOENT, "there is no rule '%s'", remove->items[i]);
	return 0;
}

static int put_rules(const struct cli *cli, const char *id, const struct net_rules_options *o,
	json_t **rules, struct err *err)
{
	json_t *before = take(rules), *next;
	const char *net = o->net.has_net ? spec_net_name(o->net.net)
	                                 : json_string_value(json_object_get(before, "net"));
	int r = check_removed(before, &o->remove, err);

	next = json_object();
	json_object_set_new(next, "net", json_string(net ? net : ""));
	json_object_set_new(next, "allow",
		merge(json_object_get(before, "allow"), &o->remove, &o->net.allow, o->rules));
	json_object_set_new(next, "deny",
		merge(json_object_get(before, "deny"), &o->remove, &o->net.deny, o->rules));
	if (r == 0)
		r = remote_life_ask(cli,
			&(struct remote_life_ask){
				.method = "PUT", .id = id, .act = RULES, .body = next},
			rules, err);
	json_decref(before);
	json_decref(next);
	return r;
}

static int put_proxy(
	const struct cli *cli, const char *id, const struct net_rules_options *o, struct err *err)
{
	struct remote_life_ask ask = {.method = "DELETE", .id = id, .act = PROXY};
	scoped_secret struct str url = {0};
	json_t *body = NULL;
	int r;

	if (o->net.upstream_proxy) {
		remote_create_add_proxy(&o->net, &url);
		body = json_pack("{s:s}", "url", url.p);
		ask.method = "PUT";
		ask.body = body;
	}
	r = remote_life_ask(cli, &ask, NULL, err);
	json_decref(body);
	return r;
}

/* As `cloche net-rules` on its host shows them: with the proxy, where there is one. */
static int add_proxy(const struct cli *cli, const char *id, json_t *rules, struct err *err)
{
	json_t *proxy = NULL;
	int r = remote_life_ask(cli,
		&(struct remote_life_ask){.method = "GET", .id = id, .act = PROXY}, &proxy, err);

	if (r == 0 && json_object_get(proxy, "url"))
		json_object_set(rules, "upstream_proxy", json_object_get(proxy, "url"));
	json_decref(proxy);
	return r == -ENOENT ? 0 : r;
}

static int refuse(const struct net_rules_options *o)
{
	if (o->reset)
		return remote_verbs_refuse(&verb_net_rules, "--reset not with a server",
			"name the rules as they were, with --rules FILE");
	if (o->within || o->hidden)
		return remote_verbs_refuse(&verb_net_rules, "not with a server",
			"--within and --hidden are for the server's own use");
	return 0;
}

int remote_net_rules(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct net_rules_options *o = options;
	json_t *rules = NULL;
	char id[ID_SIZE];
	int r = refuse(o);

	if (r == 0 && o->rules)
		r = verb_net_rules_read(o, err);
	if (r == 0)
		r = records_resolve(cli, args[0], id, err);
	if (r == 0)
		r = remote_life_ask(cli,
			&(struct remote_life_ask){.method = "GET", .id = id, .act = RULES}, &rules,
			err);
	if (r == 0 && changes_rules(o))
		r = put_rules(cli, id, o, &rules, err);
	if (r == 0 && o->has_proxy)
		r = put_proxy(cli, id, o, err);
	if (r == 0)
		r = add_proxy(cli, id, rules, err);
	if (r == 0)
		r = verb_net_rules_print(cli, rules, err);
	json_decref(rules);
	return r;
}
