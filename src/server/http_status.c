/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http_status.h"

#include <errno.h>

#include "util/jsonw.h"

static const struct {
	unsigned status;
	const char *reason;
} reasons[] = {
	{200, "OK"},
	{201, "Created"},
	{202, "Accepted"},
	{204, "No Content"},
	{303, "See Other"},
	{400, "Bad Request"},
	{401, "Unauthorized"},
	{403, "Forbidden"},
	{404, "Not Found"},
	{405, "Method Not Allowed"},
	{406, "Not Acceptable"},
	{408, "Request Timeout"},
	{409, "Conflict"},
	{410, "Gone"},
	{411, "Length Required"},
	{413, "Content Too Large"},
	{414, "URI Too Long"},
	{415, "Unsupported Media Type"},
	{417, "Expectation Failed"},
	{421, "Misdirected Request"},
	{422, "Unprocessable Content"},
	{429, "Too Many Requests"},
	{431, "Request Header Fields Too Large"},
	{500, "Internal Server Error"},
	{501, "Not Implemented"},
	{502, "Bad Gateway"},
	{503, "Service Unavailable"},
	{505, "HTTP Version Not Supported"},
	{507, "Insufficient Storage"},
};

static const struct {
	int error;
	unsigned status;
	const char *code;
} failures[] = {
	{EINVAL, 400, "invalid"},
	{EBADMSG, 400, "invalid"},
	{E2BIG, 413, "too_large"},
	{EFBIG, 413, "too_large"},
	{EPERM, 403, "forbidden"},
	{EACCES, 403, "forbidden"},
	{ENOENT, 404, "not_found"},
	{ESRCH, 404, "not_found"},
	{ENOTUNIQ, 404, "not_found"},
	{EEXIST, 409, "exists"},
	{EBUSY, 409, "busy"},
	{ESHUTDOWN, 409, "ending"},
	{EPIPE, 409, "ended"},
	{EDQUOT, 429, "quota"},
	{EOPNOTSUPP, 501, "not_implemented"},
	{EAGAIN, 503, "try_again"},
	{ETIMEDOUT, 503, "try_again"},
	{ECONNRESET, 503, "try_again"},
	{ECONNREFUSED, 503, "try_again"},
	{EROFS, 503, "read_only"},
	{ENOTCONN, 409, "not_running"},
	{EREMOTE, 409, "other_host"},
	{EBADFD, 409, "wrong_state"},
	{ENOSPC, 507, "no_space"},
};

const char *http_status_reason(unsigned status)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}

bool http_status_is_passing(int r)
{
	return r == -EAGAIN || r == -EBUSY || r == -ETIMEDOUT || r == -ECONNRESET ||
	       r == -ECONNREFUSED || r == -EROFS || r == -ENOSPC;
}

unsigned http_status_of(int r, const char **ret_code)
{
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		if (failures[i].error == -r) {
			*ret_code = failures[i].code;
			return failures[i].status;
		}
	*ret_code = "internal";
	return 500;
}

void http_status_problem(struct str *out, unsigned status, const char *code, const char *detail,
	const char *instance)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_ktext(&j, "type", "about:blank");
	jsonw_ktext(&j, "title", http_status_reason(status));
	jsonw_kint(&j, "status", status);
	jsonw_key(&j, "detail");
	jsonw_text(&j, detail); /* it may have been cut within a character */
	jsonw_ktext(&j, "code", code);
	if (instance)
		jsonw_ktext(&j, "instance", instance);
	jsonw_object_end(&j);
}
