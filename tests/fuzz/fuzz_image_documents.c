/* SPDX-License-Identifier: Apache-2.0 */
/* The documents of an image: index, manifest, config, docker's list. The first byte says which, and whether there is a tag. */
#include <stdint.h>

#include "image/document.h"
#include "image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct document_wish wish = {.arch = "amd64"};
	scoped_str struct str out = {0};
	struct image image = {0};
	struct slice json;

	if (size == 0)
		return 0;
	json = (struct slice){.p = (const char *)data + 1, .len = size - 1};
	wish.tag = data[0] & 4 ? "v1" : NULL;
	if (document_read((enum document_kind)(data[0] & 3), json, &wish, &out, NULL) < 0)
		return 0;
	if (image_take_manifest(&image, str_slice(&out), NULL) == 0)
		(void)image_take_config(&image, str_slice(&out), NULL);
	image_done(&image);
	return 0;
}
