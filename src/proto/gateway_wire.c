/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/gateway_wire.h"

#include <errno.h>
#include <stdlib.h>

enum rest {
	REST_NONE,
	REST_FLAG,
	REST_BYTES,
};

struct shape {
	enum gateway_frame_type type;
	bool has_id;
	enum rest rest;
};

static const struct shape shapes[] = {
#define SHAPE(symbol, number, has_id_, rest_) {GATEWAY_##symbol, has_id_, REST_##rest_},
	GATEWAY_FRAMES(SHAPE)
#undef SHAPE
};

static const struct shape *shape_of(uint32_t type)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (shapes[i].type == type)
			return &shapes[i];
	return NULL;
}

void gateway_wire_add(struct str *out, const struct gateway_frame *frame)
{
	const struct shape *shape = shape_of(frame->type);
	uint32_t head[2] = {0, frame->type};
	char flag = (char)frame->flag;
	struct slice rest = {0};

	if (!shape || frame->rest.len > GATEWAY_WIRE_MAX - sizeof(frame->id))
		abort();
	if (shape->rest == REST_BYTES)
		rest = frame->rest;
	else if (shape->rest == REST_FLAG)
		rest = (struct slice){.p = &flag, .len = sizeof(flag)};
	head[0] = (uint32_t)((shape->has_id ? sizeof(frame->id) : 0) + rest.len);
	str_add(out, head, sizeof(head));
	if (shape->has_id)
		str_add(out, &frame->id, sizeof(frame->id));
	str_add(out, rest.p, rest.len);
}

/* What is behind the id has the length that its type asks for. */
static bool fits(enum rest rest, struct slice payload)
{
	switch (rest) {
	case REST_NONE:
		return payload.len == 0;
	case REST_FLAG:
		return payload.len == 1 && (payload.p[0] == 0 || payload.p[0] == 1);
	case REST_BYTES:
		return true;
	}
	return false;
}

static int parse(const struct shape *shape, struct slice payload, struct gateway_frame *ret_frame)
{
	struct gateway_frame frame = {.type = shape->type};

	if (shape->has_id) {
		if (payload.len < sizeof(frame.id))
			return -EBADMSG;
		memcpy(&frame.id, payload.p, sizeof(frame.id));
		payload.p += sizeof(frame.id);
		payload.len -= sizeof(frame.id);
	}
	if (!fits(shape->rest, payload))
		return -EBADMSG;
	frame.flag = shape->rest == REST_FLAG && payload.p[0];
	if (shape->rest == REST_BYTES)
		frame.rest = payload;
	*ret_frame = frame;
	return 0;
}

long gateway_wire_take(struct slice in, struct gateway_frame *ret_frame)
{
	const struct shape *shape;
	uint32_t head[2];
	int r;

	if (in.len < GATEWAY_WIRE_HEAD)
		return 0;
	memcpy(head, in.p, sizeof(head));
	shape = shape_of(head[1]);
	if (head[0] > GATEWAY_WIRE_MAX || !shape)
		return -EBADMSG;
	if (in.len - GATEWAY_WIRE_HEAD < head[0])
		return 0;
	r = parse(shape, (struct slice){.p = in.p + GATEWAY_WIRE_HEAD, .len = head[0]}, ret_frame);
	return r < 0 ? r : (long)GATEWAY_WIRE_HEAD + head[0];
}

bool gateway_wire_is_from_gateway(enum gateway_frame_type type)
{
	return type < GATEWAY_FLUSH;
}
