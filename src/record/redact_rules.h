/* SPDX-License-Identifier: Apache-2.0 */
/* What looks like a secret: the shapes of known tokens, and names whose values are secret. Pure. */
#ifndef RECORD_REDACT_RULES_H
#define RECORD_REDACT_RULES_H

#include <stdbool.h>

#include "util/slice.h"

/* Bytes of words: a token begins where none stands before it. */
static inline bool redact_rules_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* Length of the token that text begins with, 0 where it begins with none. */
size_t redact_rules_token(struct slice text);
/* The first bytes of all tokens, as a string. */
extern const char redact_rules_token_starts[];

/* AWS_SECRET_ACCESS_KEY, --api-key, dbPassword; not KEYBOARD, token-limit, or key alone in small letters. */
bool redact_rules_is_secret_name(struct slice name);
/* Authorization, Cookie and such, and secret names that are more than one word. */
bool redact_rules_is_secret_header(struct slice name);
/* Those of them whose whole line is the secret. */
bool redact_rules_is_cookie(struct slice name);

/* A program's own way of taking a secret: `curl -u NAME:VALUE`, `sshpass -pVALUE`. */
struct redact_rules_option {
	const char *program, *option;
	bool is_glued;    /* also, or only, as one word with the option */
	bool after_colon; /* the secret is what follows the first colon */
};
/* The option of this program, NULL where it has no such one. program may be a path. */
const struct redact_rules_option *redact_rules_find_option(struct slice program, struct slice word);

#endif
