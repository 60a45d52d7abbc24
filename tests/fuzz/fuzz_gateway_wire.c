/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between supervisor and gateway. */
#include <assert.h>
#include <stdint.h>

#include "proto/gateway_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = {(const char *)data, size};
	struct gateway_frame frame;
	long n;

	while ((n = gateway_wire_take(in, &frame)) > 0) {
		scoped_str struct str again = {0};

		assert((size_t)n <= in.len);
		gateway_wire_add(&again, &frame);
		assert(slice_eq(str_slice(&again), (struct slice){in.p, (size_t)n}));
		in.p += n;
		in.len -= (size_t)n;
	}
	return 0;
}
