/* SPDX-License-Identifier: Apache-2.0 */
/* Where connections come in: records of the kernel half from the ring, and the listener. Keeps all that are held by
 * their key, and says whose turn it is to dial: only so many at once, so that a scan of many addresses takes neither
 * all descriptors nor the way out of others. */
#ifndef GATEWAY_INTAKE_H
#define GATEWAY_INTAKE_H

#include <stdbool.h>

#include "util/err.h"

struct gateway;
struct held;
struct intake;

int intake_open(struct gateway *gw, struct intake **ret_intake, struct err *err);
void intake_free(struct intake *intake);

/* The rules have changed. */
void intake_check(struct intake *intake);

/* For held.c. */
void intake_remember(struct intake *intake, struct held *held);
void intake_forget(struct intake *intake, struct held *held);
void intake_remember_failure(struct intake *intake, const struct held *held, int positive_errno);
bool intake_may_dial(struct intake *intake, struct held *held); /* else it waits and is called */
void intake_unqueue(struct intake *intake, struct held *held);  /* has dialled */

#endif
