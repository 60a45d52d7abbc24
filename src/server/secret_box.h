/* SPDX-License-Identifier: Apache-2.0 */
/* What the store may hold but not know: values of secrets, a proxy's credentials, sealed by AES-256-GCM (NIST SP 800-38D)
 * with a key that lies beside the store in <state>/server/secrets.key and in no database. Replicas share it. */
#ifndef SERVER_SECRET_BOX_H
#define SERVER_SECRET_BOX_H

#include "util/err.h"
#include "util/scoped.h"
#include "util/slice.h"
#include "util/str.h"

struct secret_box;

/* Reads the key, or makes it where there is none. */
int secret_box_open(const char *state_dir, struct secret_box **ret_box, struct err *err);
void secret_box_free(struct secret_box *box);
SCOPED_TYPE(secret_box)

/* Adds text, sealed, as base64 to out. label: what it belongs to, which is not kept: it opens with the same one only, so
 * that nobody who writes to the store gives it another account or other hosts. Any thread may call. */
int secret_box_seal(const struct secret_box *box, struct slice label, struct slice text,
	struct str *out, struct err *err);
/* Adds the text to out, which the caller overwrites. -EUCLEAN where it was sealed for something else, or with another key. */
int secret_box_unseal(const struct secret_box *box, struct slice label, struct slice sealed,
	struct str *out, struct err *err);

#endif
