/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory the gateway holds, against what it may. Counted is the whole process, as the kernel sees it: most of
 * a flow lies in libraries, and no sum of our own would be the truth.
 *
 *   ROOM  below BUDGET_FULL
 *   FULL  no new flow is begun
 *   OVER  above BUDGET_MAX: the largest flows have to go, until it is below BUDGET_FULL again */
#ifndef GATEWAY_BUDGET_H
#define GATEWAY_BUDGET_H

#include <stddef.h>
#include <stdint.h>

#include "util/err.h"
#include "util/scoped.h"

#define BUDGET_MAX  ((size_t)256 << 20)
#define BUDGET_FULL ((size_t)224 << 20)

enum budget_level {
	BUDGET_ROOM,
	BUDGET_FULL_UP,
	BUDGET_OVER,
};

struct budget;

/* path: "/proc/self/statm", read from then on without a name. */
int budget_open(const char *path, struct budget **ret_budget, struct err *err);
void budget_free(struct budget *budget);
SCOPED_TYPE(budget)

/* Looks, where the last look is some milliseconds old. */
enum budget_level budget_look(struct budget *budget, int64_t now_ns);
/* As of the last look. */
enum budget_level budget_level(const struct budget *budget);
/* Bytes that have to go so that new flows may begin again; 0: none. */
size_t budget_excess(const struct budget *budget);
/* Much was freed: gives it back to the host, and looks. */
void budget_give_back(struct budget *budget, int64_t now_ns);

#endif
