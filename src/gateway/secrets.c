/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/secrets.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <strings.h>

#include "gateway/secret_forms.h"
#include "spec/spec_rule.h"
#include "spec/spec_stand_in.h"
#include "util/base64.h"
#include "util/jsonw.h"
#include "util/mem.h"

struct hosts {
	struct spec_rule *rules;
	size_t n;
};

struct secret {
	char *name;
	struct hosts bound, pass;
	bool plain;
};

struct secrets {
	struct secret items[SECRETS_MAX];
	unsigned n;
	struct secret_forms put;      /* in fields */
	struct secret_forms put_wide; /* in paths and bodies: the long ones only */
	struct secret_forms find;
	struct secret_forms back;
};

static int add_hosts(struct hosts *hosts, const struct spec_words *from, struct err *err)
{
	hosts->rules = new0_n(struct spec_rule, from->n + 1);
	for (size_t i = 0; i < from->n; i++) {
		int r = spec_rule_parse(from->items[i], &hosts->rules[i], err);

		if (r < 0)
			return r;
		hosts->n++;
	}
	return 0;
}

static void drop_hosts(struct hosts *hosts)
{
	for (size_t i = 0; i < hosts->n; i++)
		spec_rule_done(&hosts->rules[i]);
	free(hosts->rules);
}

static int add_secret(struct secrets *set, const struct spec_secret *from, struct err *err)
{
	struct secret *s = &set->items[set->n];
	struct slice stand_in = slice_of(from->stand_in), value = slice_of(from->value), none = {0};
	int r;

	s->name = mem_dup(from->name);
	s->plain = from->plain;
	r = add_hosts(&s->bound, &from->hosts, err);
	if (r == 0)
		r = add_hosts(&s->pass, &from->pass, err);
	if (r < 0)
		return err_wrap(err, r, "secret %s", from->name);
	secret_forms_add(&set->put, set->n, stand_in, value, SECRET_PLAIN);
	if (value.len >= SPEC_STAND_IN_ANYWHERE)
		secret_forms_add(&set->put_wide, set->n, stand_in, value, SECRET_PLAIN);
	secret_forms_add(&set->find, set->n, stand_in, none,
		SECRET_PLAIN | SECRET_ALL_PERCENT | SECRET_BASE64);
	secret_forms_add(&set->back, set->n, value, stand_in,
		SECRET_PLAIN | SECRET_ALL_PERCENT | SECRET_BASE64);
	return 0;
}

int secrets_new(
	const struct spec_secret *list, size_t n, struct secrets **ret_secrets, struct err *err)
{
	scoped(secrets) struct secrets *set = new0(struct secrets);

	for (size_t i = 0; i < n; i++) {
		int r;

		if (!list[i].value || !list[i].stand_in)
			continue;
		if (strlen(list[i].value) != strlen(list[i].stand_in))
			return err_set(err, -EINVAL,
				"secret %s: its stand-in is not as long as its value",
				list[i].name);
		if (set->n == SECRETS_MAX)
			return err_set(err, -E2BIG, "more than %d secrets", SECRETS_MAX);
		r = add_secret(set, &list[i], err);
		set->n++;
		if (r < 0)
			return r;
	}
	*ret_secrets = take(&set);
	return 0;
}

void secrets_free(struct secrets *set)
{
	if (!set)
		return;
	for (unsigned i = 0; i < set->n; i++) {
		drop_hosts(&set->items[i].bound);
		drop_hosts(&set->items[i].pass);
		free(set->items[i].name);
	}
	secret_forms_done(&set->put);
	secret_forms_done(&set->put_wide);
	secret_forms_done(&set->find);
	secret_forms_done(&set->back);
	free(set);
}

uint64_t secrets_all(const struct secrets *set)
{
	return set->n == SECRETS_MAX ? UINT64_MAX : (1ULL << set->n) - 1;
}

const char *secrets_name(const struct secrets *set, unsigned i)
{
	return set->items[i].name;
}

/* port 0: any */
static bool is_one_of(const struct hosts *hosts, const char *host, uint16_t port)
{
	uint8_t address[16];
	bool is_address = spec_rule_address(slice_of(host), address) == 0;

	for (size_t i = 0; i < hosts->n; i++) {
		const struct spec_rule *rule = &hosts->rules[i];

		if ((!rule->port || !port || rule->port == port) &&
			(is_address ? spec_rule_matches_address(rule, address)
				    : spec_rule_matches_host(rule, host)))
			return true;
	}
	return false;
}

uint64_t secrets_bound(const struct secrets *set, const char *host, uint16_t port, bool verified)
{
	uint64_t mask = 0;

	for (unsigned i = 0; host && i < set->n; i++)
		if ((verified || set->items[i].plain) &&
			is_one_of(&set->items[i].bound, host, port))
			mask |= 1ULL << i;
	return mask;
}

uint64_t secrets_known(const struct secrets *set, const char *host)
{
	uint64_t mask = 0;

	for (unsigned i = 0; host && i < set->n; i++)
		if (is_one_of(&set->items[i].bound, host, 0))
			mask |= 1ULL << i;
	return mask;
}

uint64_t secrets_passing(const struct secrets *set, const char *host, uint16_t port)
{
	uint64_t mask = 0;

	for (unsigned i = 0; host && i < set->n; i++)
		if (is_one_of(&set->items[i].pass, host, port))
			mask |= 1ULL << i;
	return mask;
}

void secrets_add_hosts(const struct secrets *set, unsigned i, struct str *out)
{
	const struct hosts *bound = &set->items[i].bound;

	for (size_t h = 0; h < bound->n; h++)
		str_printf(out, "%s%s", h ? ", " : "", bound->rules[h].text);
}

static uint64_t put(
	const struct secret_forms *forms, uint64_t mask, struct slice text, struct str *out)
{
	size_t from = out->len;

	str_add(out, text.p, text.len);
	return secret_forms_replace(forms, mask, out->p + from, text.len, true);
}

static bool is_basic(struct slice value)
{
	return value.len > 6 && strncasecmp(value.p, "Basic ", 6) == 0;
}

/* Basic credentials are base64 of what is to be looked at. */
static uint64_t put_basic(
	const struct secrets *set, uint64_t mask, struct slice value, struct str *out)
{
	struct str plain = {0};
	struct slice code = {.p = value.p + 6, .len = value.len - 6};
	uint64_t done = 0;

	if (base64_decode(code, &plain) == 0)
		done = secret_forms_replace(&set->put, mask, plain.p, plain.len, true);
	if (done) {
		str_add(out, value.p, 6);
		jsonw_base64(out, plain.p, plain.len);
		OPENSSL_cleanse(plain.p, plain.len);
	} else {
		str_add(out, value.p, value.len);
	}
	str_done(&plain);
	return done;
}

uint64_t secrets_put_field(
	const struct secrets *set, uint64_t mask, struct slice value, struct str *out)
{
	return is_basic(value) ? put_basic(set, mask, value, out)
	                       : put(&set->put, mask, value, out);
}

uint64_t secrets_put_path(
	const struct secrets *set, uint64_t mask, struct slice path, struct str *out)
{
	return put(&set->put_wide, mask, path, out);
}

static uint64_t find(
	const struct secret_forms *forms, uint64_t mask, const char *p, size_t len, bool final)
{
	/* Forms that are only looked for are not written. */
	return secret_forms_replace(forms, mask, (char *)(uintptr_t)p, len, final);
}

uint64_t secrets_find(const struct secrets *set, uint64_t mask, struct slice text)
{
	scoped_str struct str plain = {0};
	uint64_t found = find(&set->find, mask, text.p, text.len, true);

	/* Short ones are not looked for within base64 at large, but here it is known to be that. */
	if (is_basic(text) &&
		base64_decode((struct slice){.p = text.p + 6, .len = text.len - 6}, &plain) == 0)
		found |= find(&set->find, mask, plain.p, plain.len, true);
	return found;
}

void secrets_put_back(const struct secrets *set, uint64_t mask, char *p, size_t len)
{
	(void)secret_forms_replace(
		&set->back, mask, p, len, true); /* which ones is of no interest */
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void pass(struct secrets_stream *s, bool final, struct str *out)
{
	const struct secrets *set = s->secrets;
	char *p = s->held.p;
	size_t len = s->held.len, n = len;

	s->found |= find(&set->find, s->find, p, len, final);
	s->done |= secret_forms_replace(&set->put_wide, s->put, p, len, final);
	(void)secret_forms_replace(&set->back, s->back, p, len, final);
	if (!final) {
		n = least(n, secret_forms_hold(&set->find, s->find, p, len));
		n = least(n, secret_forms_hold(&set->put_wide, s->put, p, len));
		n = least(n, secret_forms_hold(&set->back, s->back, p, len));
	}
	str_add(out, p, n);
	memmove(p, p + n, len - n);
	s->held.len = len - n;
}

void secrets_stream_add(struct secrets_stream *s, struct slice bytes, struct str *out)
{
	str_add(&s->held, bytes.p, bytes.len);
	if (s->held.len)
		pass(s, false, out);
}

void secrets_stream_end(struct secrets_stream *s, struct str *out)
{
	if (s->held.len)
		pass(s, true, out);
}

void secrets_stream_done(struct secrets_stream *s)
{
	if (s->held.p)
		OPENSSL_cleanse(s->held.p, s->held.cap);
	str_done(&s->held);
}
