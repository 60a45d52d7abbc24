/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api.h"
#include "util/jsonw.h"

int api_health(struct call *call, struct err *err)
{
	struct jsonw j = jsonw_to(&call->out);
	int r = store_check(call->server->store, err);

	if (r < 0) {
		complaint_warn(&call->server->away, "%s", err->msg);
		call->status = 503;
		call->code = "store_unavailable";
		return err_set(err, r, "the database does not answer: see the server's log");
	}
	jsonw_object(&j);
	jsonw_ktext(&j, "status", "ok");
	jsonw_ktext(&j, "version", CLOCHE_VERSION);
	jsonw_object_end(&j);
	return 0;
}
