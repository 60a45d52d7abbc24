/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of a project the host runs, or reads commands from, without anybody starting them by name: hooks,
 * settings of shells, editors, agents and package tools, and what a forge runs after a push. Pure.
 *
 * Not in the list: what runs only when its user starts it as he starts any source file (Makefile, a test). */
#ifndef MANIFEST_RUNS_ON_HOST_H
#define MANIFEST_RUNS_ON_HOST_H

#include <stdbool.h>

#include "util/slice.h"

/* Why ("git hook", "editor task"), or NULL where the file is none. path is below the project's root. whole: a
 * link or a renamed folder, which brings everything that may lie below it. */
const char *runs_on_host_reason(const char *path, bool whole);
/* A package.json runs on the host by its "scripts", of a dependency by those of its installation. Whether those of
 * two versions differ; true where one of them cannot be read. Empty text is a file without any. */
bool runs_on_host_scripts_differ(struct slice before, struct slice after, bool is_dependency);
/* The file is a package.json: only its scripts matter. */
bool runs_on_host_is_package(const char *path);
/* It is one of a package below a node_modules. */
bool runs_on_host_is_dependency(const char *path);

#endif
