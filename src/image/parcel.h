/* SPDX-License-Identifier: Apache-2.0 */
/* A list of texts, each with its type: what a child without rights answers its parent. The child may have been taken
 * over by what it read, so the parent takes from it only what this form can say. Pure. */
#ifndef IMAGE_PARCEL_H
#define IMAGE_PARCEL_H

#include "util/slice.h"
#include "util/str.h"

enum parcel_type {
	PARCEL_FAILED = '!', /* an errno and a sentence: nothing else counts */

	/* of a document (document.h) */
	PARCEL_DIGEST = 'd', /* "sha256:..." of the next document to read */
	PARCEL_NESTED = 'n', /* that one is an index again */
	PARCEL_SIZE = 's',   /* of what the last digest names, in decimal */
	PARCEL_CONFIG = 'c', /* digest of the config; in an archive of docker its path */
	PARCEL_LAYER = 'l',  /* likewise, from the bottom up */
	PARCEL_DIFF = 'f',   /* digests of the layers' plain tars, from the bottom up */
	PARCEL_ENV = 'e',
	PARCEL_WORKDIR = 'w',
	PARCEL_USER = 'u',
	PARCEL_ENTRYPOINT = 'x', /* a word each */
	PARCEL_CMD = 'a',
	PARCEL_LABEL = 'k', /* "KEY=VALUE", the key without '=' */

	/* of an archive (unpack.h) */
	PARCEL_WHITEOUT = 'h', /* path of what is hidden */
	PARCEL_OPAQUE = 'o',   /* path of a folder of which all is hidden */
	PARCEL_DEVICES = 'D',  /* how many were left out, in decimal; here and below */
	PARCEL_XATTRS = 'X',
	PARCEL_ENTRIES = 'N',
	PARCEL_STRANGERS = 'S', /* had owners that no sandbox has */
};

void parcel_add(struct str *out, enum parcel_type type, struct slice text);
void parcel_add_count(struct str *out, enum parcel_type type, unsigned long long n);

/* 1: the next one, which rest then stands behind; 0: there are no more; -EBADMSG. Types are not checked. */
int parcel_next(struct slice *rest, int *ret_type, struct slice *ret_text);
/* A decimal number and nothing else; -EBADMSG. */
int parcel_count(struct slice text, unsigned long long *ret_n);

#endif
