/* SPDX-License-Identifier: Apache-2.0 */
#include "record/redact_rules.h"

#include <ctype.h>
#include <strings.h>

#define NAME_MAX_ 64 /* longer ones are no names */
#define PARTS_MAX 12
#define JWT_PART  10 /* each of the three is longer in truth */

/* tail: bytes of [A-Za-z0-9_-] behind the prefix. run: so many letters and digits without a break must be
 * among them, which tells a key from a name with dashes. */
static const struct {
	const char *prefix;
	unsigned min_tail, max_tail, min_run;
	bool upper; /* capitals and digits only */
	bool wants_digit;
} tokens[] = {
	{"sk-", 16, 256, 12, false, true}, {"ghp_", 20, 255, 16, false, false},
	{"gho_", 20, 255, 16, false, false}, {"ghu_", 20, 255, 16, false, false},
	{"ghs_", 20, 255, 16, false, false}, {"ghr_", 20, 255, 16, false, false},
	{"github_pat_", 20, 255, 12, false, false}, {"glpat-", 16, 255, 8, false, false},
	{"xoxa-", 10, 255, 5, false, true}, {"xoxb-", 10, 255, 5, false, true},
	{"xoxe-", 10, 255, 5, false, true}, {"xoxp-", 10, 255, 5, false, true},
	{"xoxr-", 10, 255, 5, false, true}, {"xoxs-", 10, 255, 5, false, true},
	{"AKIA", 16, 16, 16, true, false}, {"ASIA", 16, 16, 16, true, false},
	{"AIza", 30, 64, 4, false, false}, {"npm_", 30, 64, 24, false, false},
	{"hf_", 30, 64, 24, false, false}, {"pypi-", 32, 512, 12, false, true},
	{"dop_v1_", 40, 80, 32, false, true}, {"sk_live_", 16, 255, 12, false, false},
	{"sk_test_", 16, 255, 12, false, false}, {"rk_live_", 16, 255, 12, false, false},
	{"clo_", 43, 43, 4, false, false}, /* our own (server/auth.h) */
};
const char redact_rules_token_starts[] = "sgxAnhpdrec";

static size_t tail_len(struct slice text, size_t from)
{
	size_t i = from;

	while (i < text.len && (redact_rules_is_word(text.p[i]) || text.p[i] == '-'))
		i++;
	return i - from;
}

static bool has_shape(const char *tail, size_t len, unsigned min_run, bool upper, bool wants_digit)
{
	unsigned run = 0, longest = 0;
	bool digit = false;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)tail[i];

		if (upper && !isupper(c) && !isdigit(c))
			return false;
		run = isalnum(c) ? run + 1 : 0;
		longest = run > longest ? run : longest;
		digit |= isdigit(c) != 0;
	}
	return longest >= min_run && (digit || !wants_digit);
}

/* A JSON web token: eyJ, and three parts with a dot between. */
static size_t jwt_len(struct slice text)
{
	size_t at = 0;

	if (!slice_starts(text, "eyJ"))
		return 0;
	for (int part = 0; part < 3; part++) {
		size_t n = tail_len(text, at);

		if (n < JWT_PART || (part < 2 && (at + n == text.len || text.p[at + n] != '.')))
			return 0;
		at += n + (part < 2);
	}
	return at;
}

size_t redact_rules_token(struct slice text)
{
	for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
		size_t start, tail;

		if (tokens[i].prefix[0] != text.p[0] || text.len < 2 ||
			tokens[i].prefix[1] != text.p[1] || !slice_starts(text, tokens[i].prefix))
			continue;
		start = strlen(tokens[i].prefix);
		tail = tail_len(text, start);
		if (tail < tokens[i].min_tail || tail > tokens[i].max_tail)
			continue;
		if (has_shape(text.p + start, tail, tokens[i].min_run, tokens[i].upper,
			    tokens[i].wants_digit))
			return start + tail;
	}
	return jwt_len(text);
}

/* A name in its parts, small letters: AWS_SECRET-key and awsSecretKey give aws, secret, key. */
struct parts {
	char text[NAME_MAX_ + PARTS_MAX];
	const char *part[PARTS_MAX];
	size_t n;
	bool is_upper; /* no small letter in the name: a variable of the environment */
};

static bool begins_part(struct slice name, size_t i)
{
	return i == 0 || !isalnum((unsigned char)name.p[i - 1]) ||
	       (isupper((unsigned char)name.p[i]) && islower((unsigned char)name.p[i - 1]));
}

static bool split(struct slice name, struct parts *parts)
{
	size_t len = 0;

	*parts = (struct parts){.is_upper = true};
	if (name.len == 0 || name.len > NAME_MAX_)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.p[i];

		if (!isalnum(c))
			continue;
		if (begins_part(name, i)) {
			if (parts->n == PARTS_MAX)
				return false;
			if (len)
				parts->text[len++] = '\0';
			parts->part[parts->n++] = parts->text + len;
		}
		parts->is_upper &= !islower(c);
		parts->text[len++] = (char)tolower(c);
	}
	return parts->n > 0;
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

static bool ends_with(const char *word, const char *const *ends)
{
	return *ends && (slice_ends(slice_of(word), *ends) || ends_with(word, ends + 1));
}

/* With one of these behind it a name tells about a secret, it does not hold one. */
static const char *const about[] = {"limit", "limits", "count", "file", "files", "path", "dir",
	"id", "ids", "name", "names", "type", "size", "len", "length", "ttl", "url", "uri",
	"endpoint", "expiry", "expires", "timeout", "algorithm", "format", "version", "bits",
	"index", "budget", "usage", "env", "store", "server", "host", "policy", "field", "header",
	"prefix", "hint", "stdin", "fd", "age", "only", "used", NULL};
static const char *const secret_ends[] = {"password", "passwd", "passphrase", "passcode", "secret",
	"token", "apikey", "credential", "credentials", NULL};
static const char *const key_of[] = {"api", "access", "secret", "private", "auth", "encryption",
	"signing", "account", "client", "service", "deploy", "master", "license", "webhook",
	"session", "admin", "app", "application", "storage", "shared", NULL};
static const char *const whole_names[] = {"mysql_pwd", "sshpass", "rediscli_auth", "db_pass",
	"dbpass", "smtp_pass", "ftp_pass", "db_pwd", NULL};

static bool is_number(const char *part)
{
	return part[strspn(part, "0123456789")] == '\0';
}

static bool is_whole_name(struct slice name)
{
	for (size_t i = 0; whole_names[i]; i++)
		if (name.len == strlen(whole_names[i]) &&
			strncasecmp(name.p, whole_names[i], name.len) == 0)
			return true;
	return false;
}

/* "key" alone says little: sort --key=2. Capitals, or what it is the key of, say enough. */
static bool is_key(const struct parts *parts, size_t i)
{
	const char *part = parts->part[i];
	size_t len = strlen(part);
	char owner[NAME_MAX_ + 1];

	if (len < 3 || strcmp(part + len - 3, "key") != 0)
		return false;
	if (len == 3)
		return parts->is_upper || (i > 0 && is_one_of(parts->part[i - 1], key_of));
	memcpy(owner, part, len - 3);
	owner[len - 3] = '\0';
	return is_one_of(owner, key_of);
}

static bool is_secret_parts(const struct parts *parts)
{
	size_t n = parts->n;

	while (n > 1 && is_number(parts->part[n - 1]))
		n--;
	if (is_one_of(parts->part[n - 1], about))
		return false;
	for (size_t i = 0; i < n; i++)
		if (ends_with(parts->part[i], secret_ends) || is_key(parts, i))
			return true;
	return false;
}

bool redact_rules_is_secret_name(struct slice name)
{
	struct parts parts;

	return is_whole_name(name) || (split(name, &parts) && is_secret_parts(&parts));
}

static bool is_header(struct slice name, const char *const *names)
{
	for (; *names; names++)
		if (name.len == strlen(*names) && strncasecmp(name.p, *names, name.len) == 0)
			return true;
	return false;
}

bool redact_rules_is_cookie(struct slice name)
{
	static const char *const names[] = {"cookie", "set-cookie", NULL};

	return is_header(name, names);
}

bool redact_rules_is_secret_header(struct slice name)
{
	static const char *const names[] = {"authorization", "proxy-authorization", "x-api-key",
		"api-key", "x-auth-token", "private-token", "job-token", "x-goog-api-key",
		"x-amz-security-token", "password", "passwd", "passphrase", NULL};
	struct parts parts;

	if (is_header(name, names) || redact_rules_is_cookie(name))
		return true;
	return split(name, &parts) && parts.n > 1 && is_secret_parts(&parts);
}

static const struct redact_rules_option options[] = {
	{"curl", "-u", true, true},
	{"curl", "--user", false, true},
	{"curl", "-U", true, true},
	{"curl", "--proxy-user", false, true},
	{"http", "-a", false, true},
	{"sshpass", "-p", true, false},
	{"mysql", "-p", true, false},
	{"mysqldump", "-p", true, false},
	{"mariadb", "-p", true, false},
	{"redis-cli", "-a", true, false},
};

const struct redact_rules_option *redact_rules_find_option(struct slice program, struct slice word)
{
	const char *slash = program.len ? memrchr(program.p, '/', program.len) : NULL;

	if (slash)
		program = (struct slice){
			.p = slash + 1, .len = program.len - (size_t)(slash + 1 - program.p)};
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		const struct redact_rules_option *o = &options[i];

		if (slice_is(program, o->program) &&
			(o->is_glued ? slice_starts(word, o->option) : slice_is(word, o->option)))
			return o;
	}
	return NULL;
}
