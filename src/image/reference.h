/* SPDX-License-Identifier: Apache-2.0 */
/* What --image names. A path is what looks like one ("/...", "./...", "../...") or has a transport before it: a plain
 * name never means a file, since the folder one works in may be an agent's. Pure. */
#ifndef IMAGE_REFERENCE_H
#define IMAGE_REFERENCE_H

#include "util/err.h"

enum reference_kind {
	REFERENCE_PATH,     /* a file or folder that says itself what it is */
	REFERENCE_REGISTRY, /* for skopeo */
};

struct reference {
	enum reference_kind kind;
	char *place; /* a path as written, or "docker://..." without a tag where there is a digest */
	char *tag;   /* of a path: which of several; NULL: not said */
};

int reference_parse(struct reference *reference, const char *text, struct err *err);
void reference_done(struct reference *reference);

#endif
