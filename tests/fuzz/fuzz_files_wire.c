/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a request; what could be read is read alike when it is written anew. */
#include <assert.h>
#include <stdint.h>

#include "proto/files_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice head = {.p = (const char *)data, .len = size};
	struct files_wire_request first, again;
	scoped_str struct str out = {0};

	if (size >= FILES_WIRE_START)
		(void)files_wire_head_len(head.p); /* of any bytes: a length or an error */
	if (files_wire_read(head, &first) < 0)
		return 0;
	files_wire_write(&out, &first);
	head = (struct slice){.p = out.p + FILES_WIRE_START, .len = out.len - FILES_WIRE_START};
	assert(files_wire_read(head, &again) == 0);
	assert(again.op == first.op && slice_eq(again.path, first.path) &&
		slice_eq(again.new_text, first.new_text));
	assert(again.mode == first.mode && again.content_len == first.content_len &&
		again.literal == first.literal);
	return 0;
}
