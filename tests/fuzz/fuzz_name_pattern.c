/* SPDX-License-Identifier: Apache-2.0 */
/* A pattern, a zero byte, a path: any bytes come to an end, and what matches lies where the pattern leads. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "util/name_pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *zero = memchr(data, '\0', size);
	struct slice pattern, path;
	const char *slash;

	if (!zero)
		return 0;
	pattern = (struct slice){.p = (const char *)data, .len = (size_t)(zero - data)};
	path = (struct slice){.p = (const char *)zero + 1, .len = size - pattern.len - 1};
	if (!name_pattern_matches(pattern, path))
		return 0;
	while (path.len > 0 && path.p[path.len - 1] == '/')
		path.len--;
	slash = path.len > 0 ? memrchr(path.p, '/', path.len) : NULL;
	if (slash)
		assert(name_pattern_leads(
			pattern, (struct slice){.p = path.p, .len = (size_t)(slash - path.p)}));
	return 0;
}
