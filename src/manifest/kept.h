/* SPDX-License-Identifier: Apache-2.0 */
/* Data of files in shared layers that lies below at another place. No sandbox may write to such a layer, so before an apply
 * changes that place it goes into <set>/kept/, where everybody looks first. */
#ifndef MANIFEST_KEPT_H
#define MANIFEST_KEPT_H

#include "manifest/change_set.h"

/* Its name in there. number and path: of the layer that holds the file, and in it. The caller frees it. */
char *kept_name(const struct change_layer *layer, size_t number, const char *path);
/* A descriptor of the folder; -ENOENT: nothing was kept. Any other error says nothing of that. */
int kept_open_folder(const struct change_layer *layer);
/* 1: it is kept. 0: it is not. */
int kept_has(int folder_fd, const char *name);
/* Keeps what data_fd holds, written to the disk; nothing where it is kept already. */
int kept_put(const struct change_layer *layer, const char *name, int data_fd);

#endif
