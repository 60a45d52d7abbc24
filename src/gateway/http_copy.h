/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a body as it goes by: its first bytes, its last ones where it is cut, its length, its hash. */
#ifndef GATEWAY_HTTP_COPY_H
#define GATEWAY_HTTP_COPY_H

#include "gateway/http_machine.h"
#include "util/digest.h"
#include "util/str.h"

#define HTTP_COPY_MODEL_MAX \
	(8U << 20) /* of a model API's body, as long as the shared spare lasts */
#define HTTP_COPY_TAIL_MAX \
	(16U << 10) /* of the end of a body that is cut; up to twice that is held */

struct http_copy {
	bool keep;
	size_t limit;           /* of bytes */
	size_t *spare;          /* NULL: nothing beyond limit */
	size_t taken;           /* of the spare */
	struct str bytes, tail; /* tail: of what came behind bytes, the last ones and some more */
	uint64_t seen;
	bool whole;
	struct digest digest;
};

/* A body of a request, or of a response; is_model: of a known model API. */
void http_copy_init(
	struct http_copy *copy, const struct http_setup *setup, bool is_response, bool is_model);
void http_copy_done(struct http_copy *copy);
void http_copy_add(struct http_copy *copy, struct slice bytes);
void http_copy_view(const struct http_copy *copy, struct http_copy_view *ret_view);

#endif
