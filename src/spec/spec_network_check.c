/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of what is asked about the network that need no network. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "spec/spec_network_parse.h"
#include "spec/spec_rule.h"
#include "util/mem.h"
#include "util/scoped.h"

#define RULES_MAX   4096
#define PUBLISH_MAX 32 /* descriptors of the gateway are kept for them */
#define CA_MARK     "-----BEGIN CERTIFICATE-----"

/* Rules with their sets opened. */
struct rules {
	struct spec_rule *items;
	size_t n;
};

static void rules_done(struct rules *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		spec_rule_done(&rules->items[i]);
	free(rules->items);
}
#define scoped_rules __attribute__((cleanup(rules_done)))

static int add_rule(struct rules *rules, const char *text, struct err *err)
{
	struct spec_rule rule;
	int r = spec_rule_parse(text, &rule, err);

	if (r < 0)
		return r;
	if (rules->n == RULES_MAX) {
		spec_rule_done(&rule);
		return err_set(err, -E2BIG, "more than %d network rules", RULES_MAX);
	}
	rules->items = mem_grow(rules->items, rules->n + 1, sizeof(rule));
	rules->items[rules->n++] = rule;
	return 0;
}

static int add_set(
	struct rules *rules, const struct spec_network *net, const char *name, struct err *err)
{
	const struct spec_set *set = spec_network_set(net, name);

	if (!set)
		return err_set(err, -ENOENT,
			"there is no set '%s': sets are @anthropic, @openai, @google, @github, "
			"@npm, @pip and @apt",
			name);
	for (size_t i = 0; i < set->rules.n; i++) {
		int r = add_rule(rules, set->rules.items[i], err);

		if (r < 0)
			return err_wrap(err, r, "set '%s'", name);
	}
	return 0;
}

static int open_rules(struct rules *rules, const struct spec_network *net,
	const struct spec_words *words, struct err *err)
{
	for (size_t i = 0; i < words->n; i++) {
		const char *text = words->items[i];
		int r = *text == '@' ? add_set(rules, net, text, err) : add_rule(rules, text, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int check_none(const struct spec_network *net, struct err *err)
{
	const struct {
		bool is_there;
		const char *option;
	} options[] = {{net->allow.n, "allow"}, {net->deny.n, "deny"}, {net->shadow, "shadow"},
		{net->ask, "ask"}, {net->n_maps, "host-map"}, {net->resolvers.n, "resolver"},
		{net->upstream_proxy != NULL, "upstream-proxy"}, {net->n_publish, "publish"},
		{net->n_secrets, "secret"}};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (options[i].is_there)
			return err_set(err, -EINVAL,
				"'--%s' needs a network: '--net none' has none but loopback",
				options[i].option);
	if (net->control_plane)
		return err_set(err, -EINVAL,
			"control_plane needs a network: 'none' has none but loopback");
	return 0;
}

/* The name is ours in any case: what it leads to is nobody's choice. */
static int check_plane(const struct spec_network *net, struct err *err)
{
	for (size_t i = 0; i < net->n_maps; i++)
		if (strcmp(net->maps[i].name, SPEC_PLANE_HOST) == 0)
			return err_set(err, -EINVAL,
				"host map '%s': this name is the control plane's: take another",
				SPEC_PLANE_HOST);
	return 0;
}

static int check_fit(const struct spec_network *net, struct err *err)
{
	if (net->ask && net->net != SPEC_NET_ALLOW)
		return err_set(err, -EINVAL,
			"'--ask' asks about what an allow list does not name: use it with '--net "
			"allow'");
	if (net->ask && net->shadow)
		return err_set(err, -EINVAL,
			"'--ask' and '--shadow' exclude each other: one holds what the other lets "
			"through");
	if (net->body_limit > (int64_t)SPEC_BODY_LIMIT_MAX)
		return err_set(err, -EINVAL, "a body limit above 64M is not possible");
	if (net->upstream_ca && !strstr(net->upstream_ca, CA_MARK) &&
		strncmp(net->upstream_ca, "sha256:", 7) != 0)
		return err_set(err, -EINVAL,
			"'--upstream-ca' names no file of certificates: want PEM (%s)", CA_MARK);
	return 0;
}

static int check_publish(const struct spec_network *net, struct err *err)
{
	if (net->n_publish > PUBLISH_MAX)
		return err_set(err, -E2BIG, "more than %d published ports", PUBLISH_MAX);
	for (size_t i = 0; i < net->n_publish; i++)
		for (size_t k = 0; k < i; k++)
			if (net->publish[i].host_port == net->publish[k].host_port &&
				strcmp(net->publish[i].address, net->publish[k].address) == 0)
				return err_set(err, -EEXIST,
					"port %u of the host is published twice: name it once",
					net->publish[i].host_port);
	return 0;
}

/* Whether every host that inner names is one of rule's. */
static bool covers(const struct spec_rule *rule, const struct spec_rule *inner)
{
	if (rule->port && rule->port != inner->port)
		return false;
	if (rule->kind == SPEC_RULE_ANY)
		return true;
	if (inner->kind == SPEC_RULE_ADDRESS)
		return rule->bits <= inner->bits && spec_rule_matches_address(rule, inner->address);
	if (inner->kind == SPEC_RULE_ANY)
		return false;
	if (inner->kind == SPEC_RULE_BELOW && rule->kind == SPEC_RULE_NAME)
		return false;
	if (inner->kind == SPEC_RULE_BELOW && rule->host && strcmp(rule->host, inner->host) == 0)
		return true;
	return spec_rule_matches_host(rule, inner->host);
}

/* A host may be narrower with its port than the secret is: then some port of it is allowed, which is enough. */
static bool is_reachable(const struct rules *allow, const struct spec_rule *host)
{
	for (size_t i = 0; i < allow->n; i++) {
		struct spec_rule any_port = allow->items[i];

		if (!host->port)
			any_port.port = 0;
		if (covers(&any_port, host))
			return true;
	}
	return false;
}

static const struct spec_rule *find_deny(const struct rules *deny, const struct spec_rule *host)
{
	for (size_t i = 0; i < deny->n; i++)
		if (!deny->items[i].methods && !deny->items[i].path &&
			covers(&deny->items[i], host))
			return &deny->items[i];
	return NULL;
}

static bool is_passed_through(const struct spec_network *net, const struct spec_rule *host)
{
	scoped_mem char *name = mem_printf(
		"%s%s", host->kind == SPEC_RULE_BELOW ? "*." : "", host->host ? host->host : "");

	if (net->tls == SPEC_TLS_PASSTHROUGH)
		return true;
	for (size_t i = 0; i < net->tls_passthrough.n; i++) {
		const char *at = net->tls_passthrough.items[i];
		struct spec_rule rule = {
			.kind = *at == '*' ? SPEC_RULE_BELOW : SPEC_RULE_NAME,
			.host = (char *)at + (*at == '*' ? 2 : 0),
		};

		if (host->host && covers(&rule, host))
			return true;
	}
	return false;
}

static int read_secret_host(const struct spec_secret *secret, const char *text,
	struct spec_rule *ret_host, struct err *err)
{
	int r = spec_rule_parse(text, ret_host, err);

	if (r < 0 || ret_host->methods || ret_host->path || ret_host->kind == SPEC_RULE_ANY)
		return err_set(err, -EINVAL, "secret %s: '%.200s' is no host: want HOST[:PORT]",
			secret->name, text);
	return 0;
}

static int check_passes(const struct spec_secret *secret, struct err *err)
{
	for (size_t i = 0; i < secret->pass.n; i++) {
		__attribute__((cleanup(spec_rule_done))) struct spec_rule host = {0};
		int r = read_secret_host(secret, secret->pass.items[i], &host, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_plane(const struct spec_rule *host)
{
	return host->kind == SPEC_RULE_NAME && strcmp(host->host, SPEC_PLANE_HOST) == 0;
}

/* No rule names the way there, and no TLS is on it. */
static int check_plane_secret(const struct spec_network *net, const struct spec_secret *secret,
	const struct spec_rule *host, struct err *err)
{
	if (!net->control_plane)
		return err_set(err, -EINVAL,
			"secret %s is bound to %s, which this sandbox does not reach: add "
			"\"control_plane\": true",
			secret->name, SPEC_PLANE_HOST);
	if (host->port && host->port != SPEC_PLANE_PORT)
		return err_set(err, -EINVAL, "secret %s is bound to port %u of %s, which has %d",
			secret->name, host->port, SPEC_PLANE_HOST, SPEC_PLANE_PORT);
	return 0;
}

static int check_secret_host(const struct spec_network *net, const struct rules *allow,
	const struct rules *deny, const struct spec_secret *secret, const char *text,
	struct err *err)
{
	__attribute__((cleanup(spec_rule_done))) struct spec_rule host = {0};
	const struct spec_rule *denied;
	int r = read_secret_host(secret, text, &host, err);

	if (r < 0)
		return r;
	denied = find_deny(deny, &host);
	if (denied && !net->shadow)
		return err_set(err, -EINVAL,
			"secret %s is bound to %s, which the rule to deny '%s' refuses: take one "
			"of them away",
			secret->name, text, denied->text);
	if (is_plane(&host))
		return check_plane_secret(net, secret, &host, err);
	if (net->net == SPEC_NET_ALLOW && !net->shadow && !net->ask && !is_reachable(allow, &host))
		return err_set(err, -EINVAL,
			"secret %s is bound to %s, which no rule allows: add '--allow %s'",
			secret->name, text, text);
	if (!secret->plain && is_passed_through(net, &host))
		return err_set(err, -EINVAL,
			"secret %s is bound to %s, whose TLS is passed through unopened: its value "
			"could not be put in",
			secret->name, text);
	return 0;
}

static int check_secrets(const struct spec_network *net, const struct rules *allow,
	const struct rules *deny, struct err *err)
{
	for (size_t i = 0; i < net->n_secrets; i++) {
		const struct spec_secret *secret = &net->secrets[i];
		int r = check_passes(secret, err);

		if (!spec_network_is_variable(secret->name))
			return err_set(err, -EINVAL,
				"secret %zu is not named like a variable: want letters, digits "
				"and _",
				i + 1);
		for (size_t k = 0; r == 0 && k < secret->hosts.n; k++)
			r = check_secret_host(
				net, allow, deny, secret, secret->hosts.items[k], err);
		if (r < 0)
			return r;
	}
	return 0;
}

int spec_network_check(const struct spec_network *net, struct err *err)
{
	scoped_rules struct rules allow = {0}, deny = {0};
	int r;

	if (net->net == SPEC_NET_NONE)
		return check_none(net, err);
	r = open_rules(&allow, net, &net->allow, err);
	if (r == 0)
		r = open_rules(&deny, net, &net->deny, err);
	if (r == 0)
		r = check_fit(net, err);
	if (r == 0)
		r = check_plane(net, err);
	if (r == 0)
		r = check_publish(net, err);
	return r < 0 ? r : check_secrets(net, &allow, &deny, err);
}
