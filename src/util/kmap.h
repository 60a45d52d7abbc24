/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel (BPF) map by its descriptor: bpf(2) as it is, for programs that do not load libbpf. Needs no rights
 * where the descriptor was handed over (Linux 5.19). */
#ifndef UTIL_KMAP_H
#define UTIL_KMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int kmap_find(int fd, const void *key, void *ret_value); /* -ENOENT */
int kmap_set(int fd, const void *key, const void *value);
int kmap_remove(int fd, const void *key); /* -ENOENT */
int kmap_first(int fd, void *ret_key);    /* any of them; -ENOENT: it is empty */

int kmap_ring_new(size_t bytes);                   /* a ring buffer's descriptor */
int kmap_ring_size(int fd, size_t *ret_max_bytes); /* -EINVAL where it is no ring buffer */

#endif
