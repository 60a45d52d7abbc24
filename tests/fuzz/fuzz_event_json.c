/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a record that nobody need trust; what was read is written and read again to the same text. */
#include <assert.h>
#include <stdint.h>

#include "event/event_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct event_line *line, *again;
	struct slice text = {(const char *)data, size};
	struct str one = {0}, two = {0};
	const struct event *ev;

	if (event_json_read(text, &line, NULL) == 0) {
		ev = event_json_get(line);
		event_json_write(&one, ev, ev->sandbox);
		assert(event_json_read(str_slice(&one), &again, NULL) == 0);
		ev = event_json_get(again);
		event_json_write(&two, ev, ev->sandbox);
		assert(slice_eq(str_slice(&one), str_slice(&two)));
	}
	str_done(&one);
	str_done(&two);
	return 0;
}
