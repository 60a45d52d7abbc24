/* SPDX-License-Identifier: Apache-2.0 */
/* What a row keeps of a stream: all of it up to 4,000 characters, else the first and the last 2,000 with
 * "\n[...]\n" between them; its length and SHA-256 whole. Bounded memory however long the stream. */
#ifndef SUPERVISOR_CLIP_H
#define SUPERVISOR_CLIP_H

#include <stdbool.h>
#include <stdint.h>

#include "util/digest.h"
#include "util/str.h"

struct clip {
	struct digest digest;
	uint64_t bytes;
	struct str head, tail;
};

void clip_init(struct clip *clip);
void clip_done(struct clip *clip);
void clip_add(struct clip *clip, const void *p, size_t len);
/* Adds the clipped text to out; says whether anything was left out. */
bool clip_text(const struct clip *clip, struct str *out);

#endif
