/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cli/create_options.h"
#include "cli/network_sets.h"
#include "cli/secret_values.h"
#include "spec/spec_network_parse.h"
#include "spec/spec_parse.h"
#include "spec/spec_rule.h"
#include "util/fdio.h"
#include "util/mem.h"

#define CA_MAX (1 << 20)

static struct spec_network *net_of(void *base)
{
	struct create_options *o = base;

	return &o->spec->network;
}

static int set_net(void *base, const char *value, struct err *err)
{
	struct spec_network *net = net_of(base);

	net->has_net = true;
	return spec_network_parse_net(value, &net->net, err);
}

/* Here already, so that the sentence names the option. Sets are opened later. */
static int add_rule(struct spec_words *words, const char *value, struct err *err)
{
	struct spec_rule rule;

	if (*value != '@') {
		int r = spec_rule_parse(value, &rule, err);

		if (r < 0)
			return r;
		spec_rule_done(&rule);
	}
	spec_words_add(words, value);
	return 0;
}

static int set_allow(void *base, const char *value, struct err *err)
{
	return add_rule(&net_of(base)->allow, value, err);
}

static int set_deny(void *base, const char *value, struct err *err)
{
	return add_rule(&net_of(base)->deny, value, err);
}

static int set_shadow(void *base, const char *value, struct err *err)
{
	net_of(base)->shadow = true;
	return 0;
}

static int set_ask(void *base, const char *value, struct err *err)
{
	net_of(base)->ask = true;
	return 0;
}

static int set_map(void *base, const char *value, struct err *err)
{
	return spec_network_parse_map(value, net_of(base), err);
}

static int set_resolver(void *base, const char *value, struct err *err)
{
	return spec_network_parse_resolver(value, net_of(base), err);
}

static int set_tls(void *base, const char *value, struct err *err)
{
	return spec_network_parse_tls(value, net_of(base), err);
}

static int set_ca(void *base, const char *value, struct err *err)
{
	struct spec_network *net = net_of(base);
	scoped_str struct str text = {0};
	int r = fdio_read_file(AT_FDCWD, value, CA_MAX, &text);

	if (r < 0)
		return err_set(err, r, "'%s': %m", value);
	if (!text.p || strlen(text.p) != text.len || !strstr(text.p, "-----BEGIN CERTIFICATE-----"))
		return err_set(err, -EINVAL, "'%s' holds no certificate: want PEM", value);
	free(net->upstream_ca);
	net->upstream_ca = str_take(&text);
	return 0;
}

static int set_proxy(void *base, const char *value, struct err *err)
{
	return spec_network_parse_proxy(value, net_of(base), err);
}

static int set_responses(void *base, const char *value, struct err *err)
{
	net_of(base)->record_responses = true;
	return 0;
}

static int set_body_limit(void *base, const char *value, struct err *err)
{
	return spec_parse_size(value, &net_of(base)->body_limit, err);
}

static int set_publish(void *base, const char *value, struct err *err)
{
	return spec_network_parse_publish(value, net_of(base), err);
}

static int set_secret(void *base, const char *value, struct err *err)
{
	return spec_network_parse_secret(value, net_of(base), err);
}

static int set_secret_file(void *base, const char *value, struct err *err)
{
	struct create_options *o = base;

	return secret_values_add_file(&o->secret_files, value, err);
}

const struct option network_options[] = {
	{"net", 0, "open|allow|none",
		"what may be reached: any public destination (default), what --allow names, or "
		"nothing",
		OPTION_CALL, .set = set_net},
	{"allow", 0, "RULE",
		"allow [METHOD ]HOST[:PORT][/PATH], *.HOST, an address, a range, or a set "
		"(@github, "
		"@anthropic, @openai, @google, @npm, @pip, @apt); means --net allow, and with "
		"--net open adds a private place",
		OPTION_CALL, .set = set_allow},
	{"deny", 0, "RULE", "refuse what the rule names; wins over --allow", OPTION_CALL,
		.set = set_deny},
	{"shadow", 0, NULL, "record what rules refuse and let it through", OPTION_CALL,
		.set = set_shadow},
	{"ask", 0, NULL,
		"hold what no rule names and ask on the terminal; no answer in 60 seconds refuses",
		OPTION_CALL, .set = set_ask},
	{"host-map", 0, "NAME[:PORT]=ADDR[:PORT]",
		"lead a name (or *.NAME) to an address of your choice, private ones too",
		OPTION_CALL, .set = set_map},
	{"resolver", 0, "ADDR[:PORT]", "ask this DNS server instead of the host's", OPTION_CALL,
		.set = set_resolver},
	{"tls", 0, "MODE",
		"intercept (default: HTTPS is recorded), passthrough, or NAME=passthrough",
		OPTION_CALL, .set = set_tls},
	{"upstream-ca", 0, "FILE", "trust the certificates in this file upstream, too", OPTION_CALL,
		.set = set_ca},
	{"upstream-proxy", 0, "URL",
		"send all traffic through this proxy: http://[USER:PASSWORD@]HOST:PORT",
		OPTION_CALL, .set = set_proxy},
	{"record-responses", 0, NULL, "keep bodies of responses too", OPTION_CALL,
		.set = set_responses},
	{"body-limit", 0, "SIZE", "bytes that are kept of a body (64K), at most 64M", OPTION_CALL,
		.set = set_body_limit},
	{"publish", 'p', "PORT:PORT",
		"show a port of the sandbox on the host: the host's port (of 127.0.0.1, or "
		"ADDR:PORT:PORT), then the sandbox's",
		OPTION_CALL, .set = set_publish},
	{"secret", 0, "NAME@HOST[,HOST]",
		"the variable NAME holds a stand-in inside; its value goes to these hosts only, "
		"inside TLS (,plain=yes: without, too); a request to another host that holds the "
		"stand-in is refused (,pass=HOST: its body may hold it)",
		OPTION_CALL, .set = set_secret},
	{"secret-file", 0, "NAME=FILE",
		"the value of a secret is in this file, not in the environment", OPTION_CALL,
		.set = set_secret_file},
	{NULL},
};
