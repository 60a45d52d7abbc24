/* SPDX-License-Identifier: Apache-2.0 */
/* The list of changes that a record keeps. */
#include <stdint.h>

#include "manifest/changes_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct changes_counts_list list = {0};

	if (changes_json_read((struct slice){(const char *)data, size}, &list) == 0)
		changes_json_counts_done(&list);
	return 0;
}
