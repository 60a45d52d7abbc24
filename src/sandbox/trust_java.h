/* SPDX-License-Identifier: Apache-2.0 */
/* Java's keystore of trusted certificates, in the form JKS. */
#ifndef SANDBOX_TRUST_JAVA_H
#define SANDBOX_TRUST_JAVA_H

#include <stdint.h>

#include "util/slice.h"

/* Writes to to_fd the store that from_fd holds in its first size bytes, with one more certificate (DER). -EINVAL, and
 * nothing written, where it is none that we know. */
int trust_java_copy(int from_fd, uint64_t size, struct slice der, int to_fd);

#endif
