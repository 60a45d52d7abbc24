/* SPDX-License-Identifier: Apache-2.0 */
#include "control/wire.h"

#include <errno.h>

void wire_add(struct str *out, enum wire_type type, struct slice payload)
{
	unsigned char head[WIRE_HEAD] = {(unsigned char)payload.len,
		(unsigned char)(payload.len >> 8), (unsigned char)(payload.len >> 16),
		(unsigned char)(payload.len >> 24), (unsigned char)type};

	str_add(out, head, sizeof(head));
	str_add(out, payload.p, payload.len);
}

long wire_take(struct slice in, struct wire_frame *ret_frame)
{
	const unsigned char *head = (const unsigned char *)in.p;
	uint32_t len;

	if (in.len < WIRE_HEAD)
		return 0;
	len = head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
	if (len > WIRE_MAX || head[5] || head[6] || head[7])
		return -EBADMSG;
	if (in.len < WIRE_HEAD + len)
		return 0;
	ret_frame->type = (enum wire_type)head[4];
	ret_frame->payload = (struct slice){.p = in.p + WIRE_HEAD, .len = len};
	return (long)WIRE_HEAD + len;
}
