/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SPEC_ASKED_H
#define CLI_SPEC_ASKED_H

#include <jansson.h>

#include "spec/spec.h"

/* A spec as JSON, without the members that no option changed; of its network, likewise. The caller's. */
json_t *spec_asked(const struct spec *spec);

#endif
