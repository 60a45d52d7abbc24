/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of requests against the patterns of rules. Pure. */
#ifndef GATEWAY_POLICY_PATH_H
#define GATEWAY_POLICY_PATH_H

#include <stdbool.h>

#include "util/str.h"

/* The path without its query, decoded into out. False where it may mean another place to whoever serves it: not
 * from '/', with ".", "..", empty parts or what decodes to '/', '%', '\' or a control character. */
bool policy_path_read(const char *path, struct str *out);

/* pattern: * stands for anything but '/', ** for anything. path: as policy_path_read() made it. */
bool policy_path_matches(const char *pattern, const char *path);

#endif
