/* SPDX-License-Identifier: Apache-2.0 */
/* The host folder below an upper, as the overlay sees it: without what the host has mounted in it. */
#ifndef MANIFEST_LOWER_H
#define MANIFEST_LOWER_H

#include "manifest/change_set.h"

/* A descriptor to walk from, or a negative errno. No link is followed on the way to it. */
int lower_open(const char *path);
/* The same of what lies below a layer, where that is an image's layers and no host folder, too. */
int lower_open_layer(const struct change_layer *layer);

#endif
