/* SPDX-License-Identifier: Apache-2.0 */
/* One request to a control plane and what comes of it. */
#ifndef REMOTE_TRANSFER_H
#define REMOTE_TRANSFER_H

#include "proto/sse.h"
#include "remote/link.h"
#include "util/err.h"
#include "util/slice.h"
#include "util/str.h"

#define TRANSFER_BODY_MAX (128u << 20) /* of an answer that is no stream */

/* What to ask. All is copied. */
struct ask {
	const char *method; /* NULL: GET */
	const char *path;   /* with its query, encoded: "/v1/..." */
	const char *accept; /* NULL: application/json */
	const char *once;   /* Idempotency-Key; NULL: none */
	const char *after;  /* Last-Event-ID; NULL: none */
	const char *type;   /* of the body; NULL: application/json */
	struct slice body;  /* p NULL: none */
	/* For an answer that is a stream; NULL: there is to be none. Negative ends it. */
	int (*on_event)(void *ctx, const struct sse_event *event);
	void *ctx;
};

struct transfer {
	CURL *easy;
	CURLM *multi;
	struct curl_slist *head;
	struct sse sse;
	struct str sent, body; /* body: of the answer, where it is no stream */
	long status;           /* 0: there is no answer (yet) */
	bool is_stream, is_over;
	int handler_error; /* what on_event() said */
	CURLcode result;
	char why[CURL_ERROR_SIZE];
};

/* Begins it; link_work() goes on with it. */
struct transfer *transfer_start(struct link *link, const struct ask *ask);
void transfer_free(
	struct transfer *transfer); /* also before its end: the connection is closed then */
SCOPED_TYPE(transfer)

void transfer_wait(struct link *link, struct transfer *transfer); /* until it is over */
void transfer_end(struct transfer *transfer, CURLcode result);    /* for link_work() */

/* After its end: 0 where an answer came, whatever it says, all of it. Negative with a sentence that names the server. */
int transfer_check(const struct link *link, const struct transfer *transfer, struct err *err);
/* Seconds that the server wants to be left alone; 0: it does not say. */
long transfer_retry_after(const struct transfer *transfer);

#endif
