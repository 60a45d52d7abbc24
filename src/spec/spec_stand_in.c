/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/spec_stand_in.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define RANDOM_MIN 6 /* letters and digits that must be there to be replaced */

/* Beginnings that say what kind of token it is, and nothing else. Programs check for them. */
static const char *const prefixes[] = {"sk-ant-api03-", "sk-ant-oat01-", "sk-ant-", "sk-proj-",
	"sk-svcacct-", "sk-or-v1-", "sk-", "github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
	"glpat-", "xoxb-", "xoxp-", "xapp-", "AIza", "ya29.", "hf_", "npm_", "pypi-", "AKIA",
	"ASIA", "rk_live_", "rk_test_", "sk_live_", "sk_test_", "pk_live_", "pk_test_", "whsec_",
	"gsk_", "xai-", "nvapi-", "dckr_pat_", "key-", "eyJ"};

/* Kinds of characters: what is replaced stays of its kind, so that checks of a token's shape pass. */
static const char *const kinds[] = {
	"0123456789",
	"abcdef",
	"ABCDEF",
	"ghijklmnopqrstuvwxyz",
	"GHIJKLMNOPQRSTUVWXYZ",
};

static int check(const char *value, struct err *err)
{
	size_t len = strlen(value);

	if (len < SPEC_STAND_IN_MIN)
		return err_set(err, -EINVAL,
			"its value is shorter than %d bytes, which cannot be told from other text",
			SPEC_STAND_IN_MIN);
	if (len > SPEC_STAND_IN_MAX)
		return err_set(err, -EINVAL, "its value is longer than %d bytes, a header's limit",
			SPEC_STAND_IN_MAX);
	for (size_t i = 0; i < len; i++)
		if (!isprint((unsigned char)value[i]))
			return err_set(err, -EINVAL,
				"its value holds bytes that no header may (a line end, a control "
				"character, or none of ASCII)");
	return 0;
}

static size_t prefix_len(const char *value)
{
	size_t best = 0;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t n = strlen(prefixes[i]);

		if (n > best && strncmp(value, prefixes[i], n) == 0)
			best = n;
	}
	return best;
}

static char other(char c, unsigned char random)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strchr(kinds[i], c))
			return kinds[i][random % strlen(kinds[i])];
	return c;
}

static int fill(const char *value, char *out, size_t from)
{
	unsigned char random[256];
	size_t left = 0;

	for (size_t i = from; value[i]; i++) {
		ssize_t n = left ? 0 : getrandom(random, sizeof(random), 0);

		if (n < 0)
			return -errno; /* a read this short is not interrupted */
		left += (size_t)n;
		out[i] = other(value[i], random[--left]);
	}
	return 0;
}

int spec_stand_in_make(const char *value, struct str *out, struct err *err)
{
	size_t n_random = 0, from;
	int r = check(value, err);

	if (r < 0)
		return r;
	from = prefix_len(value);
	for (const char *p = value + from; *p; p++)
		n_random += isalnum((unsigned char)*p) != 0;
	if (n_random < RANDOM_MIN)
		return err_set(err, -EINVAL,
			"its value holds fewer than %d letters and digits behind its prefix",
			RANDOM_MIN);
	str_reset(out);
	str_puts(out, value);
	do {
		r = fill(value, out->p, from);
	} while (r == 0 && strcmp(out->p, value) == 0);
	if (r < 0) {
		explicit_bzero(out->p, out->len);
		return err_set(err, r, "random bytes: %m");
	}
	return 0;
}
