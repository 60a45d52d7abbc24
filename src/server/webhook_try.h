/* SPDX-License-Identifier: Apache-2.0 */
/* One try to deliver: the transfer, and what came of it. For the sender's thread. */
#ifndef SERVER_WEBHOOK_TRY_H
#define SERVER_WEBHOOK_TRY_H

#include <curl/curl.h>
#include <jansson.h>

#include "server/webhook.h"
#include "util/err.h"

struct webhook_try {
	struct webhook_try *next;
	/* the delivery */
	char *id, *account, *webhook, *body;
	int64_t attempt;
	json_t *tries; /* of before, oldest first */
	/* the transfer */
	CURL *easy;
	struct curl_slist *head;
	char why[CURL_ERROR_SIZE];
	bool may_be_private;
	const char *refused; /* what the address was that was not connected to */
	size_t n_dropped;    /* bytes of the answer */
	int64_t started_ms;  /* on the wall */
};

struct webhook_try *webhook_try_new(const struct store_delivery *delivery);
void webhook_try_free(struct webhook_try *one);
SCOPED_TYPE(webhook_try)

/* Makes the transfer ready: signed now, for multi. */
int webhook_try_prepare(struct webhook_try *one, const struct webhook *webhook, int64_t timeout_ms,
	struct err *err);

enum webhook_outcome {
	WEBHOOK_SENT,
	WEBHOOK_AGAIN,
	WEBHOOK_NEVER, /* trying again will not help */
};
/* Of a transfer that has ended; adds it to the tries. */
enum webhook_outcome webhook_try_judge(struct webhook_try *one, CURLcode result);
/* Adds a try that came to nothing before it was sent. */
void webhook_try_note(struct webhook_try *one, int64_t status, const char *error);

#endif
