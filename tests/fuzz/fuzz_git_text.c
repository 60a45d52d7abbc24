/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox's git folder says of its branches. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "manifest/git_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {(const char *)data, size};
	struct git_text_ref ref;
	char id[GIT_TEXT_ID_SIZE];

	if (git_text_parse_ref(text, &ref) == 0) {
		assert(!ref.id[0] != !ref.name[0]);
		assert(!strstr(ref.name, "..") && !strstr(ref.name, "//"));
	}
	if (git_text_find_packed(text, "refs/heads/main", id) == 0)
		assert(git_text_is_id(slice_of(id)));
	return 0;
}
