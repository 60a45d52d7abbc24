/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/spec_network_parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "spec/spec_rule.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "util/utf8.h"

#define DNS_PORT 53

/* HOST and port of "HOST[:PORT]", "[ADDR]:PORT": port 0 where there is none. */
static int split_port(char *text, char **ret_host, uint16_t *ret_port)
{
	char *colon = strrchr(text, ':'), *end;
	unsigned long port;

	*ret_host = text;
	*ret_port = 0;
	if (text[0] == '[') {
		end = strchr(text, ']');
		if (!end)
			return -EINVAL;
		colon = end[1] ? end + 1 : NULL;
		if (colon && *colon != ':')
			return -EINVAL;
		*end = '\0';
		(*ret_host)++;
	} else if (colon && strchr(text, ':') != colon) {
		colon = NULL; /* a bare IPv6 address */
	}
	if (!colon)
		return 0;
	*colon = '\0';
	port = isdigit((unsigned char)colon[1]) ? strtoul(colon + 1, &end, 10) : 0;
	if (port < 1 || port > UINT16_MAX || *end)
		return -EINVAL;
	*ret_port = (uint16_t)port;
	return 0;
}

static bool is_address(const char *text)
{
	uint8_t address[16];

	return spec_rule_address(slice_of(text), address) == 0;
}

/* "name" or "*.name", made lower case. */
static int pattern(const char *text, char **ret_pattern)
{
	bool is_below = strncmp(text, "*.", 2) == 0;
	scoped_str struct str name = {0};
	int r = spec_rule_host_name(slice_of(text + (is_below ? 2 : 0)), &name);

	if (r < 0)
		return r;
	*ret_pattern = mem_printf("%s%s", is_below ? "*." : "", name.p);
	return 0;
}

int spec_network_parse_net(const char *text, enum spec_net *ret_net, struct err *err)
{
	for (enum spec_net net = SPEC_NET_NONE; net <= SPEC_NET_OPEN; net++)
		if (strcmp(text, spec_net_name(net)) == 0) {
			*ret_net = net;
			return 0;
		}
	return err_set(err, -EINVAL, "'%s' is no network mode: want open, allow or none", text);
}

static void put_map(struct spec_network *net, struct spec_host_map *map)
{
	for (size_t i = 0; i < net->n_maps; i++) {
		struct spec_host_map *m = &net->maps[i];

		if (m->port != map->port || strcmp(m->name, map->name) != 0)
			continue;
		free(m->name);
		free(m->address);
		*m = *map;
		return;
	}
	net->maps = mem_grow(net->maps, net->n_maps + 1, sizeof(*map));
	net->maps[net->n_maps++] = *map;
}

int spec_network_parse_map(const char *text, struct spec_network *net, struct err *err)
{
	scoped_mem char *from = mem_dup(text);
	char *to = strchr(from, '='), *name, *address;
	struct spec_host_map map = {0};

	if (to)
		*to++ = '\0';
	if (!to || split_port(from, &name, &map.port) < 0 ||
		split_port(to, &address, &map.to_port) < 0 || !is_address(address))
		return err_set(err, -EINVAL,
			"host map '%s': want NAME[:PORT]=ADDR[:PORT] with a numeric address", text);
	if (pattern(name, &map.name) < 0)
		return err_set(err, -EINVAL, "host map '%s': '%s' is no host name and no *.NAME",
			text, name);
	map.address = mem_dup(address);
	put_map(net, &map);
	return 0;
}

int spec_network_parse_resolver(const char *text, struct spec_network *net, struct err *err)
{
	scoped_mem char *copy = mem_dup(text), *full = NULL;
	char *address;
	uint16_t port;

	if (split_port(copy, &address, &port) < 0 || !is_address(address))
		return err_set(err, -EINVAL,
			"resolver '%s': want the numeric address of a DNS server, ADDR[:PORT]",
			text);
	full = mem_printf(
		strchr(address, ':') ? "[%s]:%u" : "%s:%u", address, port ? port : DNS_PORT);
	spec_words_add(&net->resolvers, full);
	return 0;
}

int spec_network_parse_tls(const char *text, struct spec_network *net, struct err *err)
{
	const char *eq = strchr(text, '=');
	scoped_mem char *name = NULL, *clean = NULL;

	for (enum spec_tls tls = SPEC_TLS_INTERCEPT; tls <= SPEC_TLS_PASSTHROUGH; tls++)
		if (strcmp(text, spec_tls_name(tls)) == 0) {
			net->tls = tls;
			return 0;
		}
	if (!eq || strcmp(eq + 1, "passthrough") != 0)
		return err_set(err, -EINVAL,
			"'%s' is no TLS mode: want intercept, passthrough or NAME=passthrough",
			text);
	name = mem_copy(text, (size_t)(eq - text));
	if (pattern(name, &clean) < 0)
		return err_set(err, -EINVAL, "'%s' is no host name and no *.NAME", name);
	spec_words_add(&net->tls_passthrough, clean);
	return 0;
}

static int hex(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* NULL where an escape is broken or a control character comes out: such credentials fit no header. */
static char *percent_decode(const char *text)
{
	scoped_str struct str out = {0};

	for (const char *p = text; *p; p++) {
		char c = *p;

		if (c == '%') {
			if (hex(p[1]) < 0 || hex(p[2]) < 0)
				return NULL;
			c = (char)(hex(p[1]) * 16 + hex(p[2]));
			p += 2;
		}
		if ((unsigned char)c < 0x20 || c == 0x7f)
			return NULL;
		str_putc(&out, c);
	}
	return str_take(&out);
}

static void set_hidden(char **at, char *value)
{
	if (*at)
		explicit_bzero(*at, strlen(*at));
	free(*at);
	*at = value;
}

static int take_credentials(char *text, struct spec_network *net)
{
	char *colon = strchr(text, ':');
	char *user, *password;

	if (colon)
		*colon = '\0';
	user = percent_decode(text);
	password = percent_decode(colon ? colon + 1 : "");
	if (!user || !password || strchr(user, ':') || !utf8_is_valid(user, strlen(user)) ||
		!utf8_is_valid(password, strlen(password))) {
		set_hidden(&user, NULL);
		set_hidden(&password, NULL);
		return -EINVAL;
	}
	set_hidden(&net->proxy_user, user);
	set_hidden(&net->proxy_password, password);
	return 0;
}

static int take_proxy(char *text, struct spec_network *net)
{
	static const char scheme[] = "http://";
	char *rest = text + sizeof(scheme) - 1, *at, *end, *host;
	scoped_str struct str name = {0};
	uint16_t port;

	if (strncmp(text, scheme, sizeof(scheme) - 1) != 0)
		return -EPROTONOSUPPORT;
	at = strrchr(rest, '@');
	if (at)
		*at++ = '\0';
	host = at ? at : rest;
	end = strchr(host, '/');
	if (end && end[1])
		return -EINVAL;
	if (end)
		*end = '\0';
	if (split_port(host, &host, &port) < 0 || port == 0)
		return -EINVAL;
	if (!is_address(host) && spec_rule_host_name(slice_of(host), &name) < 0)
		return -EINVAL;
	set_hidden(&net->proxy_user, NULL);
	set_hidden(&net->proxy_password, NULL);
	if (at && take_credentials(rest, net) < 0)
		return -EINVAL;
	free(net->upstream_proxy);
	net->upstream_proxy =
		mem_printf(strchr(host, ':') ? "http://[%s]:%u" : "http://%s:%u", host, port);
	return 0;
}

int spec_network_parse_proxy(const char *text, struct spec_network *net, struct err *err)
{
	char *copy = mem_dup(text);
	size_t len = strlen(copy);
	int r = take_proxy(copy, net);

	explicit_bzero(copy, len);
	free(copy);
	if (r < 0) /* not shown: it may hold a password */
		return err_set(err, -EINVAL,
			"the upstream proxy is no http://[USER:PASSWORD@]HOST:PORT%s",
			r == -EPROTONOSUPPORT ? ": want an HTTP proxy that knows CONNECT" : "");
	return 0;
}

/* "[ADDR:]PORT" */
static int take_host_side(const char *text, struct spec_publish *publish)
{
	scoped_mem char *full = mem_printf("%s%s", strchr(text, ':') ? "" : "127.0.0.1:", text);
	char *address;

	if (split_port(full, &address, &publish->host_port) < 0 || !publish->host_port ||
		!is_address(address))
		return -EINVAL;
	publish->address = mem_dup(address);
	return 0;
}

int spec_network_parse_publish(const char *text, struct spec_network *net, struct err *err)
{
	scoped_mem char *copy = mem_dup(text);
	char *inside = strrchr(copy, ':'), *end = copy;
	struct spec_publish publish = {0};
	unsigned long port = 0;

	if (inside) {
		*inside++ = '\0';
		port = isdigit((unsigned char)*inside) ? strtoul(inside, &end, 10) : 0;
	}
	if (port < 1 || port > UINT16_MAX || *end || take_host_side(copy, &publish) < 0)
		return err_set(err, -EINVAL,
			"'%s': want [ADDR:]PORT:PORT, the host's port and then the sandbox's",
			text);
	publish.port = (uint16_t)port;
	net->publish = mem_grow(net->publish, net->n_publish + 1, sizeof(publish));
	net->publish[net->n_publish++] = publish;
	return 0;
}

bool spec_network_is_variable(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	while (isalnum((unsigned char)*name) || *name == '_')
		name++;
	return !*name;
}

struct spec_secret *spec_network_secret(struct spec_network *net, const char *name)
{
	for (size_t i = 0; i < net->n_secrets; i++)
		if (strcmp(net->secrets[i].name, name) == 0)
			return &net->secrets[i];
	return NULL;
}

static struct spec_secret *put_secret(struct spec_network *net, const char *name)
{
	struct spec_secret *secret = spec_network_secret(net, name);

	if (!secret) {
		net->secrets = mem_grow(net->secrets, net->n_secrets + 1, sizeof(*secret));
		secret = &net->secrets[net->n_secrets++];
	} else {
		spec_secret_done(secret);
	}
	*secret = (struct spec_secret){.name = mem_dup(name)};
	return secret;
}

/* The text is not shown: somebody may have put the value there. */
static int bad_secret(struct err *err)
{
	return err_set(err, -EINVAL,
		"a secret is NAME@HOST[,HOST...][,plain=yes][,pass=HOST...]; its value comes from "
		"the environment variable NAME, or from --secret-file NAME=FILE");
}

int spec_network_parse_secret(const char *text, struct spec_network *net, struct err *err)
{
	scoped_mem char *copy = mem_dup(text);
	char *rest = strchr(copy, '@'), *word;
	struct spec_secret *secret;

	if (!rest || !rest[1])
		return bad_secret(err);
	*rest++ = '\0';
	if (!spec_network_is_variable(copy))
		return bad_secret(err);
	secret = put_secret(net, copy);
	while ((word = strsep(&rest, ","))) {
		if (strncmp(word, "plain=", 6) == 0) {
			secret->plain = strcmp(word + 6, "yes") == 0;
			if (!secret->plain && strcmp(word + 6, "no") != 0)
				return bad_secret(err);
		} else if (strncmp(word, "pass=", 5) == 0) {
			if (!word[5])
				return bad_secret(err);
			spec_words_add(&secret->pass, word + 5);
		} else if (*word) {
			spec_words_add(&secret->hosts, word);
		} else {
			return bad_secret(err);
		}
	}
	return secret->hosts.n ? 0 : bad_secret(err);
}

static void format_place(struct str *out, const char *host, uint16_t port)
{
	str_printf(out, strchr(host, ':') && port ? "[%s]" : "%s", host);
	if (port)
		str_printf(out, ":%u", port);
}

void spec_network_format_map(struct str *out, const struct spec_host_map *map)
{
	format_place(out, map->name, map->port);
	str_putc(out, '=');
	format_place(out, map->address, map->to_port);
}

void spec_network_format_publish(struct str *out, const struct spec_publish *publish)
{
	format_place(out, publish->address, publish->host_port);
	str_printf(out, ":%u", publish->port);
}

const struct spec_set *spec_network_set(const struct spec_network *net, const char *name)
{
	for (size_t i = 0; i < net->n_sets; i++)
		if (strcmp(net->sets[i].name, name) == 0)
			return &net->sets[i];
	return NULL;
}

struct spec_set *spec_network_add_set(struct spec_network *net, const char *name)
{
	for (size_t i = 0; i < net->n_sets; i++)
		if (strcmp(net->sets[i].name, name) == 0) {
			spec_words_done(&net->sets[i].rules);
			return &net->sets[i];
		}
	net->sets = mem_grow(net->sets, net->n_sets + 1, sizeof(struct spec_set));
	net->sets[net->n_sets] = (struct spec_set){.name = mem_dup(name)};
	return &net->sets[net->n_sets++];
}
