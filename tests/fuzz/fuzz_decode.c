/* SPDX-License-Identifier: Apache-2.0 */
/* A record of the kernel half, as bytes; what it decodes to is encoded, so that every slice is read. */
#include <stdint.h>

#include "event/event_json.h"
#include "observer/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped(decode) struct decode *decode = decode_new(0, 100000);
	struct decode_head head;
	struct str out = {0};
	int n = decode_record(decode, data, size, &head);

	for (int i = 0; i < n; i++)
		event_json_write(&out, &decode_get(decode, (size_t)i)->ev, slice_of("sb_fuzz"));
	str_done(&out);
	return 0;
}
