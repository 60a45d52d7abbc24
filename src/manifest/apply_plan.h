/* SPDX-License-Identifier: Apache-2.0 */
/* Which changes an apply takes over, and what it says of those that it does not. Touches nothing. */
#ifndef MANIFEST_APPLY_PLAN_H
#define MANIFEST_APPLY_PLAN_H

#include "manifest/apply.h"

/* What becomes of one change. */
struct apply_item {
	enum apply_result result;
	char *text;
	bool must_stay; /* what the host has there is not to be touched, also where it is not named but in the way */
	bool is_bare; /* a folder that was made, and nothing of what goes into it */
	char written
		[DIGEST_HEX_SIZE]; /* what a living sandbox's file held when it was copied; "": what was listed */
	bool is_whole; /* its data lay below at another place, and now lies with it */
};

/* One item a change. */
struct apply_item *apply_plan_new(
	const struct changes *changes, const struct apply_options *options);
void apply_plan_free(struct apply_item *items, size_t n);

/* Whether a change lies at or below a path (below the root, "." for all). */
bool apply_plan_names(const struct change *change, const char *path);
/* A file of a .git, counted there and not listed. */
bool apply_plan_is_git(const struct change *change);

#endif
