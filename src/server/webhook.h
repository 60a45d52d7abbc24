/* SPDX-License-Identifier: Apache-2.0 */
/* A webhook: where what happens to an account's sandboxes is told, and what of it. Kept as an object of the store; its
 * secret is shown once and kept sealed, since it signs. */
#ifndef SERVER_WEBHOOK_H
#define SERVER_WEBHOOK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/secret_box.h"
#include "server/webhook_paths.h"
#include "store/store.h"
#include "util/err.h"
#include "util/id.h"
#include "util/scoped.h"
#include "util/str.h"

#define WEBHOOK_OBJECT      "webhook" /* the kind of its object */
#define WEBHOOK_MAX         32        /* of an account */
#define WEBHOOK_URL_MAX     2048
#define WEBHOOK_SECRET_SIZE 51 /* "whsec_", 44 characters of base64, NUL */
#define WEBHOOK_ID_SIZE     36 /* of a delivery: "wd_", 32 characters, NUL */
#define WEBHOOK_SIGN_SIZE   48 /* "v1,", 44 characters of base64, NUL */

struct webhook {
	char id[ID_SIZE]; /* "wh_..." */
	char *url, *secret;
	char *sandbox;              /* of this one only; NULL: of all of the account */
	unsigned kinds;             /* a bit for each kind: webhook_hears() */
	struct webhook_paths paths; /* for WEBHOOK_FILES; none without that */
	int64_t created_ms;
};

/* Of those, the one that is of files below paths, and not of what stands in a record (file_hooks.h). */
#define WEBHOOK_FILES "file.changed"
/* In the JSON of an object that has paths, and of no other: in a text the quotes have a backslash. */
#define WEBHOOK_PATHS_MARK "\"paths\":["
#define WEBHOOK_FILES_MAX  8 /* with paths, of an account */

void webhook_free(struct webhook *webhook);
SCOPED_TYPE(webhook)

/* The bits of a list of kinds; of none (NULL): all, WEBHOOK_FILES only where has_paths. -EINVAL with a sentence, also where it is empty. */
int webhook_read_kinds(const json_t *list, bool has_paths, unsigned *ret_kinds, struct err *err);
bool webhook_hears(const struct webhook *webhook, const char *kind);
/* Whether a URL may be one of a webhook: http or https, nothing to log in with, and, unless may_be_private, no address that leads
 * inward. A name is looked up, and checked, when it is connected to. -EINVAL, -EPERM. */
int webhook_check_url(const char *url, bool may_be_private, struct err *err);

/* As it is kept, its secret sealed for the account; and back: -EINVAL where it is none of ours, -EUCLEAN where the secret
 * does not open. */
int webhook_write_object(const struct webhook *webhook, const char *account,
	const struct secret_box *box, struct str *out, struct err *err);
int webhook_read_object(const struct store_object *object, const struct secret_box *box,
	struct webhook **ret_webhook);
/* As it is answered; the secret only where it is new. */
void webhook_write(const struct webhook *webhook, bool has_secret, struct str *out);

void webhook_new_secret(char ret_secret[WEBHOOK_SECRET_SIZE]);
/* The id of a delivery: the same for the same event, however often and by whom it is indexed. subject: a sandbox, and of what
 * in it n is the number, where that is not its record. */
void webhook_delivery_id(const struct webhook *webhook, const char *subject, int64_t n,
	char ret_id[WEBHOOK_ID_SIZE]);
/* webhook-signature of Standard Webhooks 1.0. -EINVAL where the secret is none of ours. */
int webhook_sign(const char *secret, const char *id, int64_t at_s, struct slice body,
	char ret_signature[WEBHOOK_SIGN_SIZE]);

#endif
