/* SPDX-License-Identifier: Apache-2.0 */
/* Java's keystore of trusted certificates, in the form that newer ones come with: PKCS #12 without a password. */
#ifndef SANDBOX_TRUST_P12_H
#define SANDBOX_TRUST_P12_H

#include <stdint.h>

#include "util/slice.h"

/* As trust_java_copy(). -EINVAL also for one with a password, whose check we could not make anew. */
int trust_p12_copy(int from_fd, uint64_t size, struct slice der, int to_fd);

#endif
