/* SPDX-License-Identifier: Apache-2.0 */
/* Three bytes a step: what to do, a name, an address. Checked against a table that forgets nothing. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gateway/names.h"

#define NAMES   32 /* as many as one address remembers: so none gives way */
#define HOUR_NS INT64_C(3600000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct model {
	int64_t until_ns[256][NAMES];
	uint8_t synthetic[NAMES][2][16];
	bool has_synthetic[NAMES][2];
};

static void check_address(
	struct names *names, const struct model *model, uint8_t low, int64_t now_ns)
{
	uint8_t address[16] = {[10] = 0xff, 0xff, 192, 0, 2, low};
	bool seen[NAMES] = {false};
	const char *host;
	unsigned name;

	for (size_t i = 0; (host = names_find(names, address, i, now_ns)); i++) {
		assert(sscanf(host, "%u.test", &name) == 1 && name < NAMES && !seen[name]);
		seen[name] = true;
	}
	for (size_t i = 0; i < NAMES; i++)
		assert(seen[i] == (model->until_ns[low][i] > now_ns));
}

static void learn(struct names *names, struct model *model, unsigned name, const uint8_t step[3],
	int64_t now_ns)
{
	uint8_t address[16] = {[10] = 0xff, 0xff, 192, 0, 2, step[2]};
	int64_t until_ns = now_ns + (1 + step[1] / NAMES) * HOUR_NS;
	char host[16];

	snprintf(host, sizeof(host), "%u.test", name);
	names_learn(names, host, address, (uint32_t)(1 + step[1] / NAMES) * 3600, now_ns);
	if (until_ns > model->until_ns[step[2]][name])
		model->until_ns[step[2]][name] = until_ns;
	assert(strcmp(names_find(names, address, 0, now_ns), host) == 0);
	check_address(names, model, step[2], now_ns);
}

static void hand_out(struct names *names, struct model *model, unsigned name, bool is_v6)
{
	uint8_t address[16];
	char host[16];

	snprintf(host, sizeof(host), "%u.test", name);
	names_synthetic(names, host, is_v6, address);
	assert(names_is_synthetic(address));
	assert(strcmp(names_find(names, address, 0, 0), host) == 0);
	if (model->has_synthetic[name][is_v6])
		assert(memcmp(model->synthetic[name][is_v6], address, sizeof(address)) == 0);
	model->has_synthetic[name][is_v6] = true;
	memcpy(model->synthetic[name][is_v6], address, sizeof(address));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(names) struct names *names = names_new();
	static struct model model;
	int64_t now_ns = 0;

	memset(&model, 0, sizeof(model));
	for (; size >= 3; data += 3, size -= 3) {
		if (data[0] % 4 == 0)
			now_ns += data[1] * (HOUR_NS / 16);
		else if (data[0] % 4 == 1)
			hand_out(names, &model, data[1] % NAMES, data[2] % 2);
		else
			learn(names, &model, data[1] % NAMES, data, now_ns);
		check_address(names, &model, data[2], now_ns);
	}
	return 0;
}
