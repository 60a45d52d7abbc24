/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from a client of the control plane, in pieces of a size that the first byte chooses: nothing falls over, and one
 * answer at most is given to each request. */
#include <assert.h>
#include <stdint.h>

#include "../unit/http_conn_drive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct drive drive;

	if (size < 2)
		return 0;
	drive_open(&drive);
	(void)drive_send(&drive, (struct slice){.p = (const char *)data + 1, .len = size - 1},
		1 + data[0] * 4u);
	drive_turn(&drive);
	assert(http_conn_count(drive.conns) <= 1);
	drive_close(&drive);
	return 0;
}
