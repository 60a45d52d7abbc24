/* SPDX-License-Identifier: Apache-2.0 */
#include "server/keep.h"

#include <errno.h>
#include <string.h>

#define DAY_MS   (24 * 3600 * 1000.0)
#define DAYS_MAX 36500.0

static const struct {
	const char *name;
	double days;
} settings[KEEP_N] = {
	[KEEP_RECORDS] = {"records_days", 14},
	[KEEP_METRICS] = {"metrics_days", 14},
	[KEEP_DELIVERIES] = {"deliveries_days", 14},
	[KEEP_AUDIT] = {"audit_days", 400},
};

int64_t keep_ms(const json_t *config, enum keep keep)
{
	const json_t *retention = json_object_get(config, "retention");
	const json_t *days = json_object_get(retention, settings[keep].name);

	return (int64_t)((days ? json_number_value(days) : settings[keep].days) * DAY_MS);
}

int keep_check(const json_t *config, struct err *err)
{
	json_t *retention = json_object_get(config, "retention");
	const char *key;
	json_t *value;

	if (retention && !json_is_object(retention))
		return err_set(err, -EINVAL, "--config: \"retention\" is an object");
	json_object_foreach(retention, key, value)
	{
		size_t i = 0;

		while (i < KEEP_N && strcmp(settings[i].name, key) != 0)
			i++;
		if (i == KEEP_N)
			return err_set(err, -EINVAL, "--config: \"retention\" has no '%s'", key);
		if (!json_is_number(value) || json_number_value(value) <= 0 ||
			json_number_value(value) > DAYS_MAX)
			return err_set(err, -EINVAL,
				"--config: \"retention\": '%s' is a number of days up to %.0f", key,
				DAYS_MAX);
	}
	return 0;
}
