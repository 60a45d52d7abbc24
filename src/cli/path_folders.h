/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's own programs inside: PATH folders outside the system's, with what they link to. */
#ifndef CLI_PATH_FOLDERS_H
#define CLI_PATH_FOLDERS_H

#include "spec/spec.h"

/* Adds read-only internal mounts to spec and the PATH that finds them to exec, unless -e named one. path is
 * the caller's PATH; home and state_dir (absolute, may be "") are never shown themselves. */
void path_folders_add_from(struct spec *spec, struct spec_exec *exec, const char *path,
	const char *home, const char *state_dir);
/* The same with the PATH of whoever called: behind sudo, that of the shell in front of it. */
void path_folders_add(
	struct spec *spec, struct spec_exec *exec, const char *home, const char *state_dir);

#endif
