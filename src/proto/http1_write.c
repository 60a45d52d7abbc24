/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/http1.h"

void http1_add_request(struct str *out, struct slice method, struct slice target, unsigned minor)
{
	str_add(out, method.p, method.len);
	str_putc(out, ' ');
	str_add(out, target.p, target.len);
	str_puts(out, minor ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
}

void http1_add_status(struct str *out, unsigned status, struct slice reason, unsigned minor)
{
	str_puts(out, minor ? "HTTP/1.1 " : "HTTP/1.0 ");
	str_int(out, status);
	str_putc(out, ' ');
	str_add(out, reason.p, reason.len);
	str_puts(out, "\r\n");
}

void http1_add_field(struct str *out, struct slice name, struct slice value)
{
	str_add(out, name.p, name.len);
	str_puts(out, ": ");
	str_add(out, value.p, value.len);
	str_puts(out, "\r\n");
}

void http1_add_end(struct str *out)
{
	str_puts(out, "\r\n");
}

void http1_add_chunk(struct str *out, struct slice data)
{
	if (!data.len)
		return;
	str_printf(out, "%zx\r\n", data.len);
	str_add(out, data.p, data.len);
	str_puts(out, "\r\n");
}

void http1_add_last_chunk(struct str *out)
{
	str_puts(out, "0\r\n");
}
