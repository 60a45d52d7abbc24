/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/spec_rule.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/mem.h"
#include "util/str.h"

#define RULE_MAX    1024 /* bytes of a rule */
#define HOST_MAX    253
#define LABEL_MAX   63
#define METHOD_MAX  32 /* bytes of one method */
#define V4_BITS     96 /* of an IPv4 address in its mapped form that say so */
#define ADDRESS_MAX 64 /* bytes of an address as text */

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

int spec_rule_address(struct slice text, uint8_t ret_address[16])
{
	char copy[ADDRESS_MAX];
	uint8_t v4[4];

	if (text.len > 2 && text.p[0] == '[' && text.p[text.len - 1] == ']')
		text = (struct slice){.p = text.p + 1, .len = text.len - 2};
	if (text.len == 0 || text.len >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text.p, text.len);
	copy[text.len] = '\0';
	if (strlen(copy) != text.len)
		return -EINVAL;
	if (inet_pton(AF_INET, copy, v4) == 1) {
		memcpy(ret_address, v4_prefix, sizeof(v4_prefix));
		memcpy(ret_address + sizeof(v4_prefix), v4, sizeof(v4));
		return 0;
	}
	return inet_pton(AF_INET6, copy, ret_address) == 1 ? 0 : -EINVAL;
}

/* "1", "0x7f", "010": programs read names that end so as addresses, each in its own way. */
static bool is_number(struct slice label)
{
	size_t i = 0;
	bool is_hex = label.len >= 2 && label.p[0] == '0' && label.p[1] == 'x';

	for (i = is_hex ? 2 : 0; i < label.len; i++)
		if (is_hex ? !isxdigit((unsigned char)label.p[i])
			   : !isdigit((unsigned char)label.p[i]))
			return false;
	return true;
}

static bool is_label(struct slice label)
{
	if (label.len == 0 || label.len > LABEL_MAX)
		return false;
	for (size_t i = 0; i < label.len; i++)
		if (!isalnum((unsigned char)label.p[i]) && label.p[i] != '-' && label.p[i] != '_')
			return false;
	return true;
}

int spec_rule_host_name(struct slice text, struct str *out)
{
	struct slice label = {0};
	size_t at = 0;

	if (text.len > 1 && text.p[text.len - 1] == '.')
		text.len--;
	if (text.len == 0 || text.len > HOST_MAX)
		return -EINVAL;
	while (at <= text.len) {
		const char *dot = at < text.len ? memchr(text.p + at, '.', text.len - at) : NULL;
		size_t end = dot ? (size_t)(dot - text.p) : text.len;

		label = (struct slice){.p = text.p + at, .len = end - at};
		if (!is_label(label))
			return -EINVAL;
		at = end + 1;
	}
	str_reset(out);
	for (size_t i = 0; i < text.len; i++)
		str_putc(out, (char)tolower((unsigned char)text.p[i]));
	label = (struct slice){.p = out->p + (label.p - text.p), .len = label.len};
	return is_number(label) ? -EINVAL : 0;
}

/* Up to 5 digits, 1 to 65535; what follows them is left to the caller. */
static bool take_number(struct slice *text, unsigned max, unsigned *ret_number)
{
	unsigned v = 0;
	size_t i = 0;

	while (i < text->len && i < 6 && isdigit((unsigned char)text->p[i]))
		v = v * 10 + (unsigned)(text->p[i++] - '0');
	if (i == 0 || i > 5 || v > max)
		return false;
	*ret_number = v;
	*text = (struct slice){.p = text->p + i, .len = text->len - i};
	return true;
}

static bool starts_with(struct slice text, char c)
{
	return text.len > 0 && text.p[0] == c;
}

static struct slice after(struct slice text, size_t n)
{
	return (struct slice){.p = text.p + n, .len = text.len - n};
}

static bool bits_beyond(const uint8_t address[16], unsigned bits)
{
	for (unsigned i = bits; i < 128; i++)
		if (address[i / 8] & (0x80 >> (i % 8)))
			return true;
	return false;
}

/* "/8" behind an address, where it is no path: digits, then the end or a port. */
static int take_bits(struct slice *rest, struct spec_rule *rule, struct err *err)
{
	unsigned own = memcmp(rule->address, v4_prefix, sizeof(v4_prefix)) == 0 ? V4_BITS : 0;
	struct slice at = after(*rest, 1);
	unsigned bits = 0;

	while (at.len > 0 && isdigit((unsigned char)at.p[0]))
		at = after(at, 1);
	if (at.len + 1 == rest->len || (at.len > 0 && at.p[0] != ':'))
		return 0; /* a path */
	at = after(*rest, 1);
	if (!take_number(&at, 128 - own, &bits))
		return err_set(err, -EINVAL, "a range ends with /0 to /%u", 128 - own);
	rule->bits = own + bits;
	if (bits_beyond(rule->address, rule->bits))
		return err_set(err, -EINVAL,
			"the address goes on behind its first %u bits: write the range's first "
			"address",
			bits);
	*rest = at;
	return 0;
}

/* A name, "*", "*.name" or an address; what stands behind it is left in rest. */
static int take_host(struct slice text, struct spec_rule *rule, struct slice *rest, struct err *err)
{
	const char *close = starts_with(text, '[') ? memchr(text.p, ']', text.len) : NULL;
	size_t n = close ? (size_t)(close - text.p) + 1 : 0;
	size_t n_colons = 0, colon = 0;
	struct slice host;
	scoped_str struct str name = {0};

	if (starts_with(text, '[') && !close)
		return err_set(err, -EINVAL, "a ] is missing");
	for (; !close && n < text.len && text.p[n] != '/'; n++)
		if (text.p[n] == ':' && n_colons++ == 0)
			colon = n;
	if (n_colons == 1)
		n = colon;
	host = (struct slice){.p = text.p, .len = n};
	*rest = after(text, n);
	if (spec_rule_address(host, rule->address) == 0) {
		rule->kind = SPEC_RULE_ADDRESS;
		rule->bits = 128;
		return starts_with(*rest, '/') ? take_bits(rest, rule, err) : 0;
	}
	rule->kind = SPEC_RULE_NAME;
	if (slice_is(host, "*")) {
		rule->kind = SPEC_RULE_ANY;
		return 0;
	}
	if (slice_starts(host, "*.")) {
		rule->kind = SPEC_RULE_BELOW;
		host = after(host, 2);
	}
	if (spec_rule_host_name(host, &name) < 0)
		return err_set(err, -EINVAL,
			"want a host name, *.NAME, an address or a range (ADDRESS/BITS)");
	rule->host = str_take(&name);
	return 0;
}

static int take_path(struct slice rest, struct spec_rule *rule, struct err *err)
{
	if (rest.len == 0)
		return 0;
	if (rest.p[0] != '/')
		return err_set(err, -EINVAL, "want [METHOD ]HOST[:PORT][/PATH]");
	for (size_t i = 0; i < rest.len; i++) {
		if (rest.p[i] == '?' || rest.p[i] == '#')
			return err_set(err, -EINVAL,
				"a path is matched without its query: leave out what follows %c",
				rest.p[i]);
		if (rest.p[i] == '%')
			return err_set(err, -EINVAL,
				"paths are matched decoded: write the character itself, or *");
		if (!isgraph((unsigned char)rest.p[i]))
			return err_set(err, -EINVAL, "want visible ASCII in a path, or *");
	}
	rule->path = mem_copy(rest.p, rest.len);
	return 0;
}

static int take_target(struct slice text, struct spec_rule *rule, struct err *err)
{
	struct slice rest = {0};
	unsigned port = 0;
	int r = take_host(text, rule, &rest, err);

	if (r < 0)
		return r;
	if (starts_with(rest, ':')) {
		rest = after(rest, 1);
		if (!take_number(&rest, UINT16_MAX, &port) || port == 0)
			return err_set(err, -EINVAL, "a port is a number from 1 to 65535");
		rule->port = (uint16_t)port;
	}
	return take_path(rest, rule, err);
}

static int take_methods(struct slice text, struct spec_rule *rule, struct err *err)
{
	scoped_str struct str out = {0};
	size_t len = 0;

	for (size_t i = 0; i <= text.len; i++) {
		char c = i < text.len ? text.p[i] : ',';

		if (c == ',' && (len == 0 || len > METHOD_MAX))
			return err_set(err, -EINVAL, "want a method such as GET, or GET,HEAD");
		if (c != ',' && !isalpha((unsigned char)c) && c != '-')
			return err_set(err, -EINVAL, "want a method such as GET before the host");
		len = c == ',' ? 0 : len + 1;
		if (i < text.len)
			str_putc(&out, (char)toupper((unsigned char)c));
	}
	rule->methods = str_take(&out);
	return 0;
}

/* What is left of a rule whose space a shell has split it at. */
static bool is_method_alone(const char *text)
{
	static const char *const methods[] = {
		"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"};
	size_t first = strcspn(text, ",");

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strlen(methods[i]) == first && strncmp(methods[i], text, first) == 0)
			return true;
	return false;
}

static int parse(const char *text, struct spec_rule *rule, struct err *err)
{
	const char *space = strchr(text, ' ');
	const char *target = space ? space + 1 : text;
	int r;

	if (strlen(text) > RULE_MAX)
		return err_set(err, -EINVAL, "longer than %d bytes", RULE_MAX);
	if (strstr(target, "://"))
		return err_set(err, -EINVAL, "leave the scheme (http://) out: want HOST[:PORT]");
	if (!space && is_method_alone(text))
		return err_set(err, -EINVAL,
			"a method without a host: quote the rule as one, 'GET HOST[/PATH]'");
	if (space) {
		r = take_methods(
			(struct slice){.p = text, .len = (size_t)(space - text)}, rule, err);
		if (r < 0)
			return r;
	}
	return take_target(slice_of(target), rule, err);
}

int spec_rule_parse(const char *text, struct spec_rule *ret_rule, struct err *err)
{
	struct spec_rule rule = {0};
	int r = parse(text, &rule, err);

	if (r < 0) {
		spec_rule_done(&rule);
		return err_wrap(err, r, "network rule '%.200s'", text);
	}
	rule.text = mem_dup(text);
	*ret_rule = rule;
	return 0;
}

void spec_rule_done(struct spec_rule *rule)
{
	free(rule->text);
	free(rule->host);
	free(rule->methods);
	free(rule->path);
	*rule = (struct spec_rule){0};
}

bool spec_rule_matches_host(const struct spec_rule *rule, const char *host)
{
	size_t len, tail;

	switch (rule->kind) {
	case SPEC_RULE_ANY:
		return true;
	case SPEC_RULE_ADDRESS:
		return false;
	case SPEC_RULE_NAME:
		return host && strcmp(rule->host, host) == 0;
	case SPEC_RULE_BELOW:
		len = host ? strlen(host) : 0;
		tail = strlen(rule->host);
		return len > tail + 1 && host[len - tail - 1] == '.' &&
		       strcmp(host + len - tail, rule->host) == 0;
	}
	return false;
}

bool spec_rule_matches_address(const struct spec_rule *rule, const uint8_t address[16])
{
	unsigned whole = rule->bits / 8, rest = rule->bits % 8;

	if (rule->kind != SPEC_RULE_ADDRESS)
		return false;
	if (memcmp(rule->address, address, whole) != 0)
		return false;
	return rest == 0 || ((rule->address[whole] ^ address[whole]) >> (8 - rest)) == 0;
}
