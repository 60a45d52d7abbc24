/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 between two sides that say anything behind their prefaces. Input as for fuzz_http_machine.c. */
#include <stdint.h>

#include "../unit/http_drive.h"
#include "gateway/h2_machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
			  settings[] = "\0\0\0\4\0\0\0\0";
	struct http_drive d = {.step = 1 << 20, .refuse_host = "denied.test"};
	const struct http_setup setup = {.name = "a.test",
		.address = "192.0.2.1",
		.port = 80,
		.body_limit = 100,
		.record_responses = true,
		.hooks = &http_drive_hooks,
		.arg = &d};

	h2_machine_new(&setup, &d.machine);
	http_drive_send(
		&d, MACHINE_CLIENT, (struct slice){.p = preface, .len = sizeof(preface) - 1});
	for (int i = 0; i < MACHINE_SIDES; i++)
		http_drive_send(&d, (enum machine_side)i,
			(struct slice){.p = settings, .len = sizeof(settings)});
	for (size_t at = 0; at < size;) {
		enum machine_side side = data[at] & 1 ? MACHINE_SERVER : MACHINE_CLIENT;
		size_t len = data[at] >> 2;
		bool ends = data[at++] & 2;

		len = len < size - at ? len : size - at;
		if (!d.eof[side])
			http_drive_send(
				&d, side, (struct slice){.p = (const char *)data + at, .len = len});
		if (ends)
			http_drive_eof(&d, side);
		at += len;
	}
	http_drive_done(&d);
	return 0;
}
