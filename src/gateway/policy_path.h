/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of requests against the patterns of rules. Pure. */
#ifndef GATEWAY_POLICY_PATH_H
#define GATEWAY_POLICY_PATH_H

#include <stdbool.h>

#include "util/str.h"

/* The path without its query, decoded into out. False where it may mean another place to whoever serves it: not
 * from '/', with ".", "..", empty parts or what decodes to '/', '%', '\', a control character or no UTF-8. */
bool policy_path_read(const char *path, struct str *out);

/* pattern: * stands for anything but '/', ** for anything. path: as policy_path_read() made it. */
bool policy_path_matches(const char *pattern, const char *path);

/* Whether some server or other may take the path for one that matches: without case, as some hosts have it, and without
 * what follows ';' in a part. */
bool policy_path_may_match(const char *pattern, const char *path);

#endif
