/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are answered with JSON or a text, one after the other; problem documents become sentences. */
#ifndef REMOTE_REQUEST_H
#define REMOTE_REQUEST_H

#include <jansson.h>

#include "remote/link.h"
#include "remote/transfer.h"

/* Asks and waits for the whole answer. A GET that is told to wait (429) does, some times. 0 where the answer is one of success,
 * with its body; else negative with the server's sentence: -EACCES no key or one that it does not know, -EPERM, -ENOENT,
 * -EINVAL for what is wrong in the request, -EBUSY for a state that does not fit, -ECONNREFUSED, -ECONNRESET, -EAGAIN for what
 * passes, -EIO for the rest. */
int request_text(struct link *link, const struct ask *ask, struct str *ret_body, struct err *err);
/* The same; the answer has to be JSON. The caller's; NULL where it is empty. ret may be NULL. */
int request_json(struct link *link, const struct ask *ask, json_t **ret, struct err *err);
/* For an answer that has come already. */
int request_check(const struct link *link, const struct transfer *transfer, struct err *err);
/* The code of a problem document in an answer; "" where it is none. */
void request_code(const struct transfer *transfer, char ret_code[32]);

/* Each item of a list, page by page; path may have a query. on_item: negative ends it, 1 ends it without an error. */
int request_pages(struct link *link, const char *path,
	int (*on_item)(void *ctx, json_t *item, struct err *err), void *ctx, struct err *err);

/* A new name for Idempotency-Key. */
#define REQUEST_ONCE_SIZE 40
void request_new_once(char ret_once[REQUEST_ONCE_SIZE]);

#endif
