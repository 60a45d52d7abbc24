/* SPDX-License-Identifier: Apache-2.0 */
/* A stored snapshot that was damaged: refused, or every question about it has an answer within it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/snapshot.h"
#include "util/mem.h"

#define ASKED_MAX 64 /* records that are looked at */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_mem void *bytes = mem_copy(data, size); /* aligned, as mapped memory is */
	struct snapshot s;

	if (!snapshot_check(bytes, size, &s))
		return 0;
	for (uint32_t i = 0; i < s.head->n_records && i < ASKED_MAX; i++) {
		const struct snapshot_record *r = &s.records[i];
		scoped_str struct str path = {0};

		if (snapshot_path(&s, i, &path))
			(void)snapshot_find_path(&s, str_slice(&path));
		(void)snapshot_find(&s, r->parent, slice_of(s.text + r->name));
		if (strlen(s.text + r->target) > size ||
			r->first + r->n_entries > s.head->n_records)
			abort();
	}
	return 0;
}
