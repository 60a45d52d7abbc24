/* SPDX-License-Identifier: Apache-2.0 */
/* What a child that reads images for us answers, where it was taken over by what it read. */
#include <stdint.h>
#include <stdlib.h>

#include "image/image.h"
#include "image/parcel.h"
#include "image/whiteout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice all = {.p = (const char *)data, .len = size}, rest = all, text, folder, name;
	struct image image = {0};
	unsigned long long n;
	int type;

	while (parcel_next(&rest, &type, &text) == 1) {
		(void)parcel_count(text, &n);
		if (whiteout_split(text, &folder, &name) == 0 &&
			(name.len == 0 || folder.len + name.len > text.len))
			abort();
	}
	if (image_take_manifest(&image, all, NULL) == 0)
		(void)image_take_config(&image, all, NULL);
	image_done(&image);
	return 0;
}
