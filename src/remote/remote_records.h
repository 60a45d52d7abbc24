/* SPDX-License-Identifier: Apache-2.0 */
/* A control plane's records, as the views of the cli take them. */
#ifndef REMOTE_REMOTE_RECORDS_H
#define REMOTE_REMOTE_RECORDS_H

#include "remote/link.h"

extern const struct elsewhere remote_records;

#endif
