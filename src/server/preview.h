/* SPDX-License-Identifier: Apache-2.0 */
/* A preview: a TCP port inside a sandbox, where a server of the agent's listens, shown to people at an origin of its own. Kept
 * as an object of the store, of its sandbox; its id is its host name. */
#ifndef SERVER_PREVIEW_H
#define SERVER_PREVIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"
#include "util/id.h"
#include "util/slice.h"
#include "util/str.h"

#define PREVIEW_OBJECT     "preview" /* the kind of its object */
#define PREVIEW_MAX        100       /* of an account */
#define PREVIEW_NAME_MAX   100
#define PREVIEW_DOMAIN     "preview.localhost" /* where the configuration names none */
#define PREVIEW_DOMAIN_MAX 200
#define PREVIEW_ROUND_SIZE 17

struct preview {
	char id[ID_SIZE]; /* "pv_..." */
	char account[64], sandbox[ID_SIZE];
	char name[PREVIEW_NAME_MAX + 1]; /* for people; may be empty */
	uint16_t port;                   /* inside */
	bool is_public;
	char round[PREVIEW_ROUND_SIZE]; /* another one after each change of who may see it */
	int64_t created_ms;
};

/* Where previews are shown, as browsers have it: something before us may have TLS. */
struct preview_place {
	const char *domain; /* in small letters */
	uint16_t port;
	bool is_tls;
};

void preview_new_round(char ret_round[PREVIEW_ROUND_SIZE]);

/* As it is kept, but for what its row has; and back: -EINVAL where it is none of ours. */
void preview_write_object(const struct preview *preview, struct str *out);
int preview_read_object(const struct store_object *object, struct preview *ret_preview);
/* As it is answered; place NULL: this server shows none, so it has no URL. */
void preview_write(
	const struct preview *preview, const struct preview_place *place, struct str *out);

/* "https://pv-0123456789abcdef.preview.example.org:7411" */
void preview_add_origin(const char *id, const struct preview_place *place, struct str *out);
/* The id in a host name of the domain, in whatever letters. False: it is none. */
bool preview_read_host(struct slice host, const char *domain, char ret_id[ID_SIZE]);
bool preview_is_domain(const char *text);

#endif
