/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to a person: may this be reached? One question for all who wait for the same place; no answer within a
 * minute is a no. What was answered holds until the rules change. */
#ifndef GATEWAY_ASK_H
#define GATEWAY_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/flow_head.h"

struct gateway;
struct ask;
struct asks; /* all of them */

struct asks *ask_all_new(struct gateway *gw);
void ask_all_free(struct asks *asks);

/* on_answer is called later, once. */
struct ask *ask_start(struct gateway *gw, const struct flow_head *head,
	void (*on_answer)(void *ctx, bool is_allowed), void *ctx);
void ask_cancel(struct ask *ask); /* NULL is fine */

/* From the supervisor. A question that is no longer open is passed over. */
void ask_all_answer(struct asks *asks, uint64_t id, bool is_allowed);
/* New rules: what was answered is forgotten. */
void ask_all_forget(struct asks *asks);

#endif
