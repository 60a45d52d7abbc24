/* SPDX-License-Identifier: Apache-2.0 */
#include "util/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t clock_mono_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return clock_ns(t);
}

int64_t clock_wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / CLOCK_NS_PER_MS;
}

void clock_format(int64_t wall_ms, char text[CLOCK_TEXT_LEN])
{
	time_t seconds = wall_ms / 1000;
	int ms = (int)(wall_ms % 1000);
	struct tm tm;

	if (ms < 0) {
		ms += 1000;
		seconds--;
	}
	if (!gmtime_r(&seconds, &tm) || tm.tm_year + 1900 < 0 || tm.tm_year + 1900 > 9999) {
		seconds = 0;
		gmtime_r(&seconds, &tm);
	}
	strftime(text, CLOCK_TEXT_LEN, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + 19, CLOCK_TEXT_LEN - 19, ".%03dZ", ms % 1000);
}

static const char *read_time(const char *at, struct tm *tm)
{
	if (*at != 'T' && *at != ' ')
		return at;
	return strptime(at + 1, "%H:%M:%S", tm);
}

static const char *read_fraction(const char *at, int *ret_ms)
{
	int scale = 100;

	*ret_ms = 0;
	if (*at != '.')
		return at;
	for (at++; *at >= '0' && *at <= '9'; at++) {
		*ret_ms += (*at - '0') * scale;
		scale /= 10;
	}
	return at;
}

int clock_parse(const char *text, int64_t *ret_wall_ms)
{
	struct tm tm = {0};
	const char *at = strptime(text, "%Y-%m-%d", &tm);
	int ms = 0;

	if (at)
		at = read_time(at, &tm);
	if (at)
		at = read_fraction(at, &ms);
	if (!at || (*at && strcmp(at, "Z") != 0))
		return -EINVAL;
	*ret_wall_ms = timegm(&tm) * 1000LL + ms;
	return 0;
}

int clock_parse_duration(const char *text, int64_t *ret_ms)
{
	static const struct {
		const char *unit;
		int64_t ms;
	} units[] = {
		{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {"", 1000}};
	char *end;
	double v;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	v = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) != 0)
			continue;
		v *= (double)units[i].ms;
		if (!(v < 1e15))
			return -EINVAL;
		*ret_ms = (int64_t)v;
		return 0;
	}
	return -EINVAL;
}

void clock_add_duration(struct str *out, int64_t ms)
{
	int64_t s = (ms + 500) / 1000;

	if (ms < 1000)
		str_printf(out, "%lldms", (long long)ms);
	else if (ms < 10000)
		str_printf(out, "%lld.%llds", (long long)(ms / 1000), (long long)(ms % 1000 / 100));
	else if (s < 60)
		str_printf(out, "%llds", (long long)s);
	else if (s < 3600)
		str_printf(out, "%lldm%02llds", (long long)(s / 60), (long long)(s % 60));
	else
		str_printf(out, "%lldh%02lldm", (long long)(s / 3600), (long long)(s % 3600 / 60));
}
