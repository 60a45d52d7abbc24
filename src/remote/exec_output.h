/* SPDX-License-Identifier: Apache-2.0 */
/* What a command prints, on its way to this process's stdout and stderr. */
#ifndef REMOTE_EXEC_OUTPUT_H
#define REMOTE_EXEC_OUTPUT_H

#include <jansson.h>
#include <stdint.h>

#include "util/slice.h"

/* Zero-initialise. By descriptor, 1 and 2. */
struct exec_output {
	uint64_t n_passed[3]; /* bytes that came */
	int errors[3];        /* negative: why nothing is passed on any more */
};

/* Takes the data of an event "stdout" or "stderr": {data, data_b64}. -EPIPE where whoever read it has gone, else 0: what cannot
 * be written is told once, and shows in exec_output_is_lost(). -EBADMSG: it is none. */
int exec_output_take(struct exec_output *output, int fd, struct slice json);
/* The end of what came while there was no connection, as far as the row has it; says what is missing. */
void exec_output_complete(struct exec_output *output, const json_t *row);
bool exec_output_is_lost(const struct exec_output *output);

#endif
