/* SPDX-License-Identifier: Apache-2.0 */
/* A spec and an exec as they come over the wire. */
#include <stdint.h>

#include "spec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {(const char *)data, size};
	scoped(spec) struct spec *spec = NULL;
	scoped(spec_exec) struct spec_exec *exec = NULL;
	struct str out = {0};

	if (spec_read(text, &spec, NULL) == 0) {
		spec_write(&out, spec);
		(void)spec_network_check(&spec->network, NULL);
		(void)spec_hidden_write(&out, &spec->network);
		(void)spec_hidden_read(&spec->network, text, NULL);
	}
	if (spec_exec_read(text, &exec, NULL) == 0)
		spec_exec_write(&out, exec);
	str_done(&out);
	return 0;
}
