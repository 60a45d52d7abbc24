/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox that a control plane makes may name of the host: nothing but what the configuration lists for its account.
 * Checked here, where paths are resolved and defaults are known, and not by who asked. */
#ifndef CLI_CREATE_WITHIN_H
#define CLI_CREATE_WITHIN_H

#include "spec/spec.h"
#include "util/err.h"

/* file: {"host_roots": [DIR], "images": [PREFIX], "private": BOOL, "raw": BOOL}, all may be missing. -EPERM with a sentence
 * where the spec names more. */
int create_within_check(const struct spec *spec, const char *file, struct err *err);

/* A folder that cannot be resolved (r says why): told so where the account may look, and else refused as if it were there,
 * so that nobody learns what is. key: the spec's. */
int create_within_missing(
	const char *key, const char *path, const char *file, int r, struct err *err);

/* The same for rules that take the place of a living sandbox's: of the network alone. */
int create_within_check_network(const struct spec_network *net, const char *file, struct err *err);

/* Whether it lets the account name private places; key is what wants it to. */
int create_within_check_private(const char *file, const char *key, struct err *err);

#endif
