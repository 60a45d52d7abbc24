/* SPDX-License-Identifier: Apache-2.0 */
/* A cow mount as its sandbox sees it: the upper over the host's folder, attached nowhere and only to be read. The kernel
 * itself puts both together, so whiteouts, renamed folders and files without data are right. The sandbox may run
 * meanwhile: what is read is what was there at that moment. */
#ifndef MANIFEST_MERGED_H
#define MANIFEST_MERGED_H

#include "manifest/change_set.h"

/* A descriptor of its top, to look names up from (beneath.h). Needs root. */
int merged_open(const struct change_layer *layer, struct err *err);
/* Shared layers alone, topmost first. A negative errno without words. */
int merged_open_shared(const struct change_shared *layers, size_t n);

#endif
