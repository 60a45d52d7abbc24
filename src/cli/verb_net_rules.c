/* SPDX-License-Identifier: Apache-2.0 */
/* cloche net-rules: the rules of a running sandbox, shown and changed. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cli/create_within.h"
#include "cli/network_sets.h"
#include "cli/records.h"
#include "cli/session.h"
#include "cli/verb.h"
#include "cli/verb_options.h"
#include "spec/spec_network_parse.h"
#include "spec/spec_rule.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define RULES_FILE_MAX (1u << 20)

static void init(void *options)
{
	struct net_rules_options *o = options;

	spec_network_init(&o->net);
}

static void done(void *options)
{
	struct net_rules_options *o = options;

	spec_network_done(&o->net);
	spec_words_done(&o->remove);
}

static int add(struct spec_words *words, const char *value, struct err *err)
{
	struct spec_rule rule;
	int r = *value == '@' ? 0 : spec_rule_parse(value, &rule, err);

	if (r < 0)
		return r;
	if (*value != '@')
		spec_rule_done(&rule);
	spec_words_add(words, value);
	return 0;
}

static int set_allow(void *base, const char *value, struct err *err)
{
	struct net_rules_options *o = base;

	return add(&o->net.allow, value, err);
}

static int set_deny(void *base, const char *value, struct err *err)
{
	struct net_rules_options *o = base;

	return add(&o->net.deny, value, err);
}

static int set_remove(void *base, const char *value, struct err *err)
{
	struct net_rules_options *o = base;

	return add(&o->remove, value, err);
}

static int set_net(void *base, const char *value, struct err *err)
{
	struct net_rules_options *o = base;

	o->net.has_net = true;
	return spec_network_parse_net(value, &o->net.net, err);
}

static int set_proxy(void *base, const char *value, struct err *err)
{
	struct net_rules_options *o = base;

	o->has_proxy = true;
	return strcmp(value, "none") == 0 ? 0 : spec_network_parse_proxy(value, &o->net, err);
}

static const struct option table[] = {
	{"allow", 0, "RULE", "one more rule to allow, or a set", OPTION_CALL, .set = set_allow},
	{"deny", 0, "RULE", "one more rule to deny, or a set; wins over --allow", OPTION_CALL,
		.set = set_deny},
	{"remove", 0, "RULE", "take a rule away, as it is shown", OPTION_CALL, .set = set_remove},
	{"net", 0, "open|allow",
		"what no rule names: any public destination is allowed, or none is", OPTION_CALL,
		.set = set_net},
	{"rules", 0, "FILE",
		"these and no others: a JSON object with net, allow and deny, as in a spec",
		OPTION_TEXT, offsetof(struct net_rules_options, rules)},
	{"upstream-proxy", 0, "URL|none",
		"new connections go through this proxy (http://[USER:PASSWORD@]HOST:PORT), or "
		"directly",
		OPTION_CALL, .set = set_proxy},
	{"hidden", 0, "FILE", "the proxy's credentials are in this JSON file (docs/server.md)",
		OPTION_TEXT, offsetof(struct net_rules_options, hidden)},
	{"within", 0, "FILE", "refuse what of the host this file does not list (docs/server.md)",
		OPTION_TEXT, offsetof(struct net_rules_options, within)},
	{"reset", 0, NULL, "back to what the sandbox was made with, before the others", OPTION_ON,
		offsetof(struct net_rules_options, reset)},
	{NULL},
};

static const struct option_group groups[] = {{"Rules", table}, {NULL}};

/* Other keys of a network are not the rules'. */
static int check_keys(const json_t *rules, struct err *err)
{
	json_t *value;
	const char *key;

	if (!json_is_object(rules) || !json_object_get(rules, "net"))
		return err_set(err, -EINVAL, "want a JSON object with net, allow and deny");
	json_object_foreach((json_t *)rules, key, value)
	{
		if (strcmp(key, "net") != 0 && strcmp(key, "allow") != 0 &&
			strcmp(key, "deny") != 0)
			return err_set(err, -EINVAL, "'%s' is no part of the rules", key);
	}
	return 0;
}

int verb_net_rules_read(struct net_rules_options *o, struct err *err)
{
	scoped_str struct str text = {0};
	json_t *rules;
	int r = fdio_read_file(AT_FDCWD, o->rules, RULES_FILE_MAX, &text);

	if (r < 0)
		return err_set(err, r, "'%s': %m", o->rules);
	if (o->reset || o->remove.n || o->net.allow.n || o->net.deny.n || o->net.has_net ||
		o->has_proxy)
		return err_set(err, -EINVAL, "'--rules' stands alone: the file has all of them");
	rules = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, NULL);
	r = check_keys(rules, err);
	json_decref(rules);
	if (r == 0)
		r = spec_network_read(&o->net, str_slice(&text), err);
	return r < 0 ? err_wrap(err, r, "'%s'", o->rules) : 0;
}

/* Before sets are filled in: what stands there then is the host's. Without --rules nobody knows what the change makes of the
 * rules that are there. */
static int check_within(struct net_rules_options *o, struct err *err)
{
	int r;

	if (!o->within)
		return 0;
	if (!o->rules && !o->has_proxy)
		return err_set(
			err, -EINVAL, "'--within' goes with '--rules' or '--upstream-proxy'");
	r = o->has_proxy ? create_within_check_private(o->within, "upstream_proxy", err)
	                 : create_within_check_network(&o->net, o->within, err);
	o->is_forbidden = r == -EPERM;
	return r;
}

static int read_hidden(struct net_rules_options *o, struct err *err)
{
	scoped_secret struct str text = {0};
	int r;

	if (!o->hidden)
		return 0;
	if (!o->net.upstream_proxy)
		return err_set(err, -EINVAL, "'--hidden' goes with '--upstream-proxy URL'");
	r = fdio_read_file(AT_FDCWD, o->hidden, RULES_FILE_MAX, &text);
	if (r < 0)
		return err_set(err, r, "'%s': %m", o->hidden);
	return spec_hidden_read(&o->net, str_slice(&text), err);
}

static void write_words(
	struct jsonw *j, const char *key, const struct spec_words *words, bool always)
{
	if (words->n == 0 && !always)
		return;
	jsonw_key(j, key);
	jsonw_array(j);
	for (size_t i = 0; i < words->n; i++)
		jsonw_text(j, words->items[i]);
	jsonw_array_end(j);
}

static void write_sets(struct jsonw *j, const struct spec_network *net)
{
	jsonw_key(j, "sets");
	jsonw_object(j);
	for (size_t i = 0; i < net->n_sets; i++)
		write_words(j, net->sets[i].name, &net->sets[i].rules, false);
	jsonw_object_end(j);
}

static void write_request(const struct cli *cli, const struct net_rules_options *o, struct str *out)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	write_words(&j, "allow", &o->net.allow, o->rules);
	write_words(&j, "deny", &o->net.deny, o->rules);
	write_words(&j, "remove", &o->remove, false);
	if (o->rules)
		jsonw_kbool(&j, "replace", true);
	if (o->net.n_sets)
		write_sets(&j, &o->net);
	if (o->net.has_net)
		jsonw_ktext(&j, "net", spec_net_name(o->net.net));
	if (o->reset)
		jsonw_kbool(&j, "reset", true);
	jsonw_ktext(&j, "actor", cli->actor);
	jsonw_object_end(&j);
}

static bool changes_rules(const struct net_rules_options *o)
{
	return o->rules || o->reset || o->net.has_net || o->remove.n || o->net.allow.n ||
	       o->net.deny.n;
}

static int change_proxy(const struct cli *cli, struct session *session, struct net_rules_options *o,
	struct err *err)
{
	scoped_secret struct str request = {0}, proxy = {0};
	struct jsonw j = jsonw_to(&request);

	spec_hidden_write_proxy(&proxy, &o->net);
	jsonw_object(&j);
	jsonw_key(&j, "proxy");
	jsonw_raw(&j, str_slice(&proxy));
	jsonw_ktext(&j, "actor", cli->actor);
	jsonw_object_end(&j);
	spec_hidden_forget(&o->net);
	return session_ask(session, "net-proxy", str_slice(&request), NULL, err);
}

static void add_rules(struct str *out, const char *word, const json_t *network, const char *key)
{
	const json_t *list = json_object_get(network, key);
	const json_t *sets = json_object_get(network, "sets");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *rule = json_string_value(json_array_get(list, i));
		const json_t *set = rule ? json_object_get(sets, rule) : NULL;

		if (!rule)
			continue;
		str_printf(out, "%-6s %s", word, rule);
		if (set)
			str_printf(out, " (%zu rules)", json_array_size(set));
		str_putc(out, '\n');
	}
}

static int print_text(const json_t *network, struct err *err)
{
	scoped_str struct str out = {0};
	const char *net = json_string_value(json_object_get(network, "net"));
	const char *proxy = json_string_value(json_object_get(network, "upstream_proxy"));

	str_printf(&out, "net    %s%s%s\n", net ? net : "?",
		json_is_true(json_object_get(network, "shadow")) ? " shadow" : "",
		json_is_true(json_object_get(network, "ask")) ? " ask" : "");
	add_rules(&out, "allow", network, "allow");
	add_rules(&out, "deny", network, "deny");
	if (proxy)
		str_printf(&out, "proxy  %s\n", proxy);
	return cli_print(&out, err);
}

int verb_net_rules_print(const struct cli *cli, const json_t *network, struct err *err)
{
	scoped_mem char *text = NULL;
	scoped_str struct str out = {0};

	if (!cli->json && !cli->jsonl)
		return print_text(network, err);
	text = json_dumps(network, JSON_COMPACT);
	str_printf(&out, "%s\n", text ? text : "null");
	return cli_print(&out, err);
}

/* All that can be said before anybody is asked. */
static int check(struct net_rules_options *o, const struct cli *cli, struct err *err)
{
	int r = cli_need_root(err);

	if (r == 0 && o->rules)
		r = verb_net_rules_read(o, err);
	if (r == 0)
		r = check_within(o, err);
	if (r == 0)
		r = read_hidden(o, err);
	return r < 0 ? r : network_sets_open(&o->net, cli, err);
}

/* Rules first: what they refuse is not to go through another proxy for a moment. */
static int change(const struct cli *cli, struct session *session, struct net_rules_options *o,
	json_t **ret_answer, struct err *err)
{
	scoped_str struct str request = {0};
	int r = 0;

	write_request(cli, o, &request);
	if (!o->has_proxy || changes_rules(o))
		r = session_ask(session, "net-rules", str_slice(&request), ret_answer, err);
	if (r < 0 || !o->has_proxy)
		return r;
	json_decref(take(ret_answer));
	r = change_proxy(cli, session, o, err);
	return r < 0 ? r : session_ask(session, "net-rules", slice_of(""), ret_answer, err);
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct net_rules_options *o = options;
	struct session session;
	char id[ID_SIZE];
	json_t *answer = NULL;
	int r = check(o, cli, err);

	if (r == 0)
		r = records_resolve(cli, args[0], id, err);
	if (r == 0)
		r = session_connect(&session, cli, id, err);
	if (r < 0)
		return r;
	r = change(cli, &session, o, &answer, err);
	if (r == 0)
		r = verb_net_rules_print(cli, json_object_get(answer, "network"), err);
	json_decref(answer);
	session_done(&session);
	return r;
}

static bool is_forbidden(const void *options)
{
	return ((const struct net_rules_options *)options)->is_forbidden;
}

const struct verb verb_net_rules = {
	.name = "net-rules",
	.class = VERB_RUN,
	.usage = "ID",
	.help = "show or change the network rules of a running sandbox",
	.text = "Rules are those of `cloche run --allow` and --deny. What is open and not allowed "
		"any more is cut. Another upstream proxy is for new connections; what is open goes "
		"on. The rules that are in force then are printed.",
	.groups = groups,
	.options_size = sizeof(struct net_rules_options),
	.init = init,
	.done = done,
	.is_forbidden = is_forbidden,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
