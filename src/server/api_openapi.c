/* SPDX-License-Identifier: Apache-2.0 */
/* docs/openapi.yaml as JSON, made by tools/openapi when this is built. */
#include "server/api.h"

#include "openapi.h"

int api_openapi(struct call *call, struct err *err)
{
	str_add(&call->out, document, sizeof(document) - 1);
	return 0;
}
