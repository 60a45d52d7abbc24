/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest, or a list of sha256sum, that somebody hands us to compare with. */
#include <stdint.h>

#include "manifest/compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manifest_list list = {0};
	scoped_str struct str out = {0};

	if (manifest_lines_read((struct slice){(const char *)data, size}, &list, NULL) < 0)
		return 0;
	manifest_take_below(&list.items[0], "/root");
	compare_write(&out, "/root", &list.items[0], &list.items[list.n - 1].tree);
	manifest_list_done(&list);
	return 0;
}
