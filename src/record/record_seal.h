/* SPDX-License-Identifier: Apache-2.0 */
/* Reads seal.json of a record that nobody need trust. */
#ifndef RECORD_RECORD_SEAL_H
#define RECORD_RECORD_SEAL_H

#include <jansson.h>

#include "record/record_head.h"

struct record_seal {
	json_t *json; /* NULL: none, or none that can be read; the texts below are its own */
	struct record_head head; /* its head made anew from the rest */
	char id[RECORD_ID_MAX + 1];
	const char *signature, *key, *fingerprint;
	const char *named; /* the head it says it has */
};

/* *ret_seal is zero-initialised. -ENOENT: there is none; -EBADMSG: it is no seal. */
int record_seal_read(int dirfd, struct record_seal *ret_seal);
void record_seal_done(struct record_seal *seal);

#endif
