/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of a verb fill, for verbs that are done in two ways: on this host, and by a control plane
 * (src/remote). */
#ifndef CLI_VERB_OPTIONS_H
#define CLI_VERB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/source.h"
#include "spec/spec.h"

struct ps_options {
	bool all;
	struct spec_words labels; /* K=V */
	const char *since;
};

struct rm_options {
	bool record, changes, bodies, is_aged;
};

#endif
