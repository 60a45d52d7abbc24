/* SPDX-License-Identifier: Apache-2.0 */
#include "server/once.h"

#include <errno.h>
#include <stdlib.h>

#include "server/http_status.h"
#include "server/once_later.h"
#include "server/route.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

#define FIELD   "Idempotency-Key"
#define KEY_MAX 200
#define KEPT_MS (24 * 3600 * 1000LL)

static int take_answer(const struct store_request *request, void *arg)
{
	struct call *call = arg;

	call->status = (unsigned)request->status;
	str_puts(&call->out, request->answer);
	if (call->status >= 400)
		call->type = "application/problem+json";
	return 0;
}

static struct store_request request_of(struct call *call)
{
	return (struct store_request){.account = call->caller.account,
		.name = call->once_name,
		.request_hash = call->once_hash,
		.started_ms = call->once_started_ms,
		.expires_ms = call->once_started_ms + KEPT_MS};
}

static void hash_request(struct call *call)
{
	struct slice body = exchange_body(call->exchange);
	struct digest digest;

	digest_init(&digest);
	digest_add(&digest, call->route->method, strlen(call->route->method));
	digest_add(&digest, call->path, strlen(call->path) + 1);
	digest_add(&digest, body.p ? body.p : "", body.len);
	digest_value_hex(&digest, call->once_hash);
}

static int decide(struct call *call, int r, struct err *err)
{
	if (r < 0 || r == STORE_ONCE_NEW)
		return r < 0 ? r : 0;
	free(take(&call->once_name));
	if (r == STORE_ONCE_DONE)
		return 1;
	if (r == STORE_ONCE_BUSY)
		return err_set(err, -EBUSY,
			"the request with this " FIELD " is still at work, or its server was "
			"killed meanwhile: look what became of it");
	call->status = 422;
	call->code = "idempotency_mismatch";
	return err_set(err, -EINVAL, "this " FIELD " was used for another request");
}

static bool is_name(struct slice key)
{
	for (size_t i = 0; i < key.len; i++)
		if (key.p[i] < '!' || key.p[i] > '~')
			return false;
	return key.len > 0 && key.len <= KEY_MAX;
}

int once_begin(struct call *call, struct err *err)
{
	struct slice key = {0};
	struct store_request request;
	int r = call->route->is_creating ? call_field(call, FIELD, &key, err) : 0;

	if (r < 0 || !key.p)
		return r;
	if (!is_name(key))
		return err_set(err, -EINVAL,
			FIELD ": want one, of 1 to %d visible ASCII characters", KEY_MAX);
	call->once_name = mem_copy(key.p, key.len);
	call->once_started_ms = clock_wall_ms();
	hash_request(call);
	request = request_of(call);
	return decide(call,
		store_request_begin(call->server->store, &request, take_answer, call, err), err);
}

static bool may_end_later(
	struct call *call, const struct store_request *request, bool is_drop, int r)
{
	struct once_later *later = call->server->once_later;

	return later && http_status_is_passing(r) && once_later_add(later, request, is_drop);
}

void once_end(struct call *call)
{
	bool is_drop = call->status >= 500 || call->status == 429 || call->type;
	struct store_request request;
	struct err err;
	int r;

	if (!call->once_name)
		return;
	request = request_of(call);
	request.status = call->status;
	request.answer = call->out.p ? call->out.p : "";
	if (is_drop)
		r = store_request_drop(call->server->store, &request, &err);
	else
		r = store_request_finish(call->server->store, &request, &err);
	if (r < 0 && !may_end_later(call, &request, is_drop, r))
		log_warn("the answer to a request with a key cannot be kept: %s", err.msg);
	free(take(&call->once_name));
}
