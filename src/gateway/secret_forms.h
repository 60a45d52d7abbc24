/* SPDX-License-Identifier: Apache-2.0 */
/* The forms that a text takes on its way, and replacing one text by another in all of them. */
#ifndef GATEWAY_SECRET_FORMS_H
#define GATEWAY_SECRET_FORMS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"
#include "util/str.h"

/* Six bits of which some belong to the text, at either end of its part in base64. */
struct secret_edge {
	unsigned char mask; /* those bits; 0: the part ends with a whole character */
	unsigned char from, to;
};

struct secret_form {
	unsigned secret;
	char *from, *to; /* both of len; to is NULL where it is only looked for */
	size_t len;
	bool base64;
	const char *alphabet;
	struct secret_edge before, behind;
};

struct secret_forms {
	struct secret_form *items;
	size_t n;
	size_t longest;
	bool begins[256]; /* some form begins with this byte */
};

enum secret_kinds {
	SECRET_PLAIN = 1,       /* as it is, percent-encoded, JSON escapes */
	SECRET_ALL_PERCENT = 2, /* every byte percent-encoded */
	SECRET_BASE64 = 4,      /* within base64, wherever it stands there */
};

/* Adds the forms of from, each with the one of to that has the same length; to.p NULL: to look for only. */
void secret_forms_add(struct secret_forms *forms, unsigned secret, struct slice from,
	struct slice to, unsigned kinds);
void secret_forms_done(struct secret_forms *forms); /* overwrites */

/* Replaces in place what belongs to mask; those found. final: nothing follows the text. Without it what ends with
 * the text in base64 is left: its last bits are not known yet. */
uint64_t secret_forms_replace(
	const struct secret_forms *forms, uint64_t mask, char *p, size_t len, bool final);
/* Where the text's end could be the beginning of a form: everything before may go. len where it cannot. */
size_t secret_forms_hold(
	const struct secret_forms *forms, uint64_t mask, const char *p, size_t len);

#endif
