/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/spec_parse.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <strings.h>

#include "spec/spec_internal.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/utf8.h"

#define CPUS_MAX 4096

struct choice {
	const char *name;
	int value;
};

static const struct choice modes[] = {
	{"ro", SPEC_MOUNT_RO}, {"rw", SPEC_MOUNT_RW}, {"cow", SPEC_MOUNT_COW}, {NULL}};
static const struct choice losses[] = {{"freeze", SPEC_ON_LOSS_FREEZE}, {"stop", SPEC_ON_LOSS_STOP},
	{"continue", SPEC_ON_LOSS_CONTINUE}, {NULL}};
static const struct choice durabilities[] = {{"process", false}, {"disk", true}, {NULL}};

static const struct choice *choice_find(const struct choice *choices, const char *text)
{
	for (; choices->name; choices++)
		if (strcmp(choices->name, text) == 0)
			return choices;
	return NULL;
}

int spec_parse_mode(const char *text, enum spec_mount_mode *ret_mode, struct err *err)
{
	const struct choice *c = choice_find(modes, text);

	if (!c)
		return err_set(err, -EINVAL, "'%s' is no mount mode: want ro, rw or cow", text);
	*ret_mode = (enum spec_mount_mode)c->value;
	return 0;
}

int spec_parse_on_loss(const char *text, enum spec_on_loss *ret_on_loss, struct err *err)
{
	const struct choice *c = choice_find(losses, text);

	if (!c)
		return err_set(err, -EINVAL, "'%s': want freeze, stop or continue", text);
	*ret_on_loss = (enum spec_on_loss)c->value;
	return 0;
}

int spec_parse_durability(const char *text, bool *ret_durable, struct err *err)
{
	const struct choice *c = choice_find(durabilities, text);

	if (!c)
		return err_set(err, -EINVAL, "'%s': want process or disk", text);
	*ret_durable = c->value;
	return 0;
}

/* A plain decimal number that starts with a digit: no sign, no "inf", no hexadecimal. */
static int parse_decimal(const char *text, double *ret_value, const char **ret_rest)
{
	size_t n = strspn(text, "0123456789.");
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	*ret_value = strtod(text, &end);
	if (end != text + n)
		return -EINVAL;
	*ret_rest = end;
	return 0;
}

static int unit_shift(const char *unit, unsigned *ret_shift)
{
	static const struct {
		const char *letter;
		unsigned shift;
	} units[] = {{"", 0}, {"K", 10}, {"M", 20}, {"G", 30}, {"T", 40}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t n = strlen(units[i].letter);

		if (strncasecmp(unit, units[i].letter, n) != 0)
			continue;
		if (unit[n] == '\0' || strcasecmp(unit + n, "B") == 0 ||
			(n > 0 && strcasecmp(unit + n, "iB") == 0)) {
			*ret_shift = units[i].shift;
			return 0;
		}
	}
	return -EINVAL;
}

int spec_parse_size(const char *text, int64_t *ret_bytes, struct err *err)
{
	const char *unit = "";
	unsigned shift = 0;
	double value = 0;

	if (parse_decimal(text, &value, &unit) < 0 || unit_shift(unit, &shift) < 0)
		return err_set(
			err, -EINVAL, "'%s' is no size: want a number with K, M, G or T", text);
	value *= (double)(1LL << shift);
	if (!(value < (double)(1LL << 62)))
		return err_set(err, -EINVAL, "'%s' is too large a size", text);
	*ret_bytes = (int64_t)value;
	return 0;
}

int spec_parse_cpus(const char *text, int64_t *ret_milli, struct err *err)
{
	const char *rest = "";
	double value = 0;

	if (parse_decimal(text, &value, &rest) < 0 || *rest || value * 1000 < 10 ||
		value > CPUS_MAX)
		return err_set(err, -EINVAL,
			"'%s' is no number of CPUs: want one like 1.5, at least 0.01", text);
	*ret_milli = (int64_t)(value * 1000 + 0.5);
	return 0;
}

int spec_parse_duration(const char *text, int64_t *ret_ms, struct err *err)
{
	int64_t ms;

	if (clock_parse_duration(text, &ms) < 0 || ms < 1)
		return err_set(
			err, -EINVAL, "'%s' is no duration: want one like 30s, 5m or 2h", text);
	*ret_ms = ms;
	return 0;
}

int spec_parse_count(const char *text, int64_t *ret_count, struct err *err)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || v < 1)
		return err_set(err, -EINVAL, "'%s' is no whole number from 1", text);
	*ret_count = v;
	return 0;
}

/* What is another host's is named there as it is written. */
static int find_host(const char *host, bool is_here, char **ret, struct err *err)
{
	if (!is_here && host[0] != '/')
		return err_set(err, -EINVAL,
			"'%s' is a folder of the server: want an absolute path", host);
	*ret = is_here ? realpath(host, NULL) : mem_dup(host);
	return *ret ? 0 : err_set(err, -errno, "'%s': %m", host);
}

static int add_mount(struct spec *spec, bool is_here, const char *host, const char *guest,
	const char *mode, struct err *err)
{
	scoped_mem char *real = NULL;
	scoped_str struct str clean = {0};
	enum spec_mount_mode m = SPEC_MOUNT_RO;
	int r;

	r = spec_parse_mode(mode, &m, err);
	if (r < 0)
		return r;
	if (guest[0] != '/')
		return err_set(err, -EINVAL,
			"'%s' is the place inside and must be an absolute path", guest);
	r = find_host(host, is_here, &real, err);
	if (r < 0)
		return r;
	path_resolve(slice_of("/"), slice_of(guest), &clean);
	spec_add_mount(spec, real, clean.p, m, false);
	return 0;
}

int spec_parse_mount(const char *text, bool is_here, struct spec *spec, struct err *err)
{
	scoped_mem char *host = mem_dup(text);
	char *mode = strrchr(host, ':'), *guest = NULL;
	int r;

	if (mode) {
		*mode++ = '\0';
		guest = strrchr(host, ':');
	}
	if (!guest || guest == host || guest[1] == '\0')
		return err_set(err, -EINVAL, "mount '%s': want HOST:GUEST:ro, :rw or :cow", text);
	*guest++ = '\0';
	r = add_mount(spec, is_here, host, guest, mode, err);
	return r < 0 ? err_wrap(err, r, "mount '%s'", text) : 0;
}

int spec_parse_pair(const char *text, struct spec_pair *ret_pair, struct err *err)
{
	const char *eq = strchr(text, '=');
	char *key;

	if (!eq || eq == text)
		return err_set(err, -EINVAL, "'%s': want KEY=VALUE", text);
	if (!utf8_is_valid(text, strlen(text)))
		return err_set(err, -EINVAL, "'%s' is not UTF-8", text);
	key = mem_copy(text, (size_t)(eq - text));
	*ret_pair = (struct spec_pair){.key = key, .value = mem_dup(eq + 1)};
	return 0;
}

/* In the order of their bits. */
const struct spec_source spec_parse_source_table[] = {
	{"processes", SPEC_TRACE_PROCESSES},
	{"files", SPEC_TRACE_FILES},
	{"outputs", SPEC_TRACE_OUTPUTS},
	{"network", SPEC_TRACE_NETWORK},
	{"mounts", SPEC_TRACE_MOUNTS},
	{NULL, 0},
};

static int add_source(const char *name, unsigned *trace, struct err *err)
{
	for (const struct spec_source *s = spec_parse_source_table; s->name; s++)
		if (strcmp(s->name, name) == 0) {
			*trace |= s->bit;
			return 0;
		}
	return err_set(err, -EINVAL,
		"'%s' is no trace source: want processes, files, outputs, network or mounts", name);
}

int spec_parse_sources(const char *text, unsigned *ret_trace, struct err *err)
{
	scoped_mem char *copy = mem_dup(text);
	char *rest = copy, *name;
	unsigned trace = 0;

	if (strcmp(text, "all") == 0)
		trace = SPEC_TRACE_ALL;
	else if (strcmp(text, "none") != 0)
		while ((name = strsep(&rest, ","))) {
			int r = add_source(name, &trace, err);

			if (r < 0)
				return r;
		}
	*ret_trace = trace;
	return 0;
}
