/* SPDX-License-Identifier: Apache-2.0 */
/* Frames on a supervisor's control socket. */
#include <assert.h>
#include <stdint.h>

#include "control/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = {(const char *)data, size};
	struct wire_frame frame;
	long n;

	while ((n = wire_take(in, &frame)) > 0) {
		assert((size_t)n <= in.len && frame.payload.len == (size_t)n - WIRE_HEAD);
		in.p += n;
		in.len -= (size_t)n;
	}
	return 0;
}
