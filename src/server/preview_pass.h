/* SPDX-License-Identifier: Apache-2.0 */
/* Who may see a private preview: whoever has a pass, a cookie for this preview alone, which a token that is good once was
 * spent for; and only by pages of this preview's own origin. Pure but for random bytes.
 *
 * A pass is sealed (secret_box.h) and bound to the preview, its round and the key that the token was made with: nobody makes
 * one, and it is good no more when the preview is removed or shown to others, or the key is revoked, on any replica. */
#ifndef SERVER_PREVIEW_PASS_H
#define SERVER_PREVIEW_PASS_H

#include "proto/http1.h"
#include "server/preview.h"
#include "server/secret_box.h"
#include "util/digest.h"
#include "util/err.h"

#define PREVIEW_PASS_S       (12 * 3600) /* its life */
#define PREVIEW_TOKEN_S      30
#define PREVIEW_TOKEN_SIZE   (DIGEST_HEX_LEN + 1) /* 256 random bits, hexadecimal */
#define PREVIEW_SPENT_SIZE   (ID_LEN + 1 + DIGEST_HEX_LEN + 1)
#define PREVIEW_COOKIE       "cloche_preview"
#define PREVIEW_COOKIE_TLS   "__Host-cloche_preview" /* no other host can set one of that name */
#define PREVIEW_COOKIE_TRIES 8

struct preview_pass {
	char key[ID_SIZE], round[PREVIEW_ROUND_SIZE];
	int64_t expires_s;
};

/* Adds the whole Set-Cookie line to out. */
int preview_pass_add_cookie(const struct secret_box *box, const struct preview *preview,
	const char *key, int64_t now_s, bool is_tls, struct str *out, struct err *err);
/* The pass for this preview among the cookies of a request. -ENOENT where none is good: of others of that name, which a page
 * may have put there by a script, the first few are looked at. Whether round and key still stand is the caller's to ask. */
int preview_pass_find(const struct secret_box *box, const char *id, const struct http1_head *head,
	int64_t now_s, bool is_tls, struct preview_pass *ret_pass);
/* Whether a cookie of this name is ours, in either spelling and whatever letters. */
bool preview_pass_is_ours(struct slice cookie_name);

/* Takes the next cookie of a Cookie field: its name, trimmed (all of it where there is no '='), and the whole pair. */
bool preview_pass_next_cookie(struct slice *rest, struct slice *ret_name, struct slice *ret_pair);

void preview_pass_new_token(char ret_token[PREVIEW_TOKEN_SIZE]);
/* The name under which a token is kept: its hash behind the preview's id, which the hash of no other kind of token is. */
void preview_pass_spent(const char *id, const char *token, char ret_name[PREVIEW_SPENT_SIZE]);
/* The token in "/.cloche/open?token=..."; p is NULL where there is none that could be one. */
struct slice preview_pass_token_in(struct slice target);

/* Whether a request comes from a page of the preview's own, or of none (an address that was typed, a link that was followed):
 * a page elsewhere, another preview's among them, acts with nobody's pass. By Origin, which has to be the host that is asked, and
 * by Fetch Metadata. */
bool preview_pass_is_at_home(const struct http1_head *head);
/* A page asks for the script of a service worker, which would see the token of whoever opens the preview next. */
bool preview_pass_is_service_worker(const struct http1_head *head);

#endif
