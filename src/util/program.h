/* SPDX-License-Identifier: Apache-2.0 */
/* The programs that belong together: beside the running one, else in ../libexec/cloche from there. Their data files:
 * in ../share/cloche from there, or in share beside it (a build folder). */
#ifndef UTIL_PROGRAM_H
#define UTIL_PROGRAM_H

#include "util/err.h"
#include "util/str.h"

int program_find(const char *name, struct str *ret_path, struct err *err);
int program_find_data(const char *name, struct str *ret_path, struct err *err); /* "sets/github" */

#endif
