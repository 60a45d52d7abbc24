/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/files_wire.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define MAGIC      "CLF1"
#define FIELD_HEAD 5
#define NUMBER_LEN 8

static const char *const names[] = {
	[FILES_WIRE_CREATE] = "file_create",
	[FILES_WIRE_VIEW] = "view",
	[FILES_WIRE_REPLACE] = "str_replace",
	[FILES_WIRE_LS] = "ls",
	[FILES_WIRE_GLOB] = "glob",
	[FILES_WIRE_GREP] = "grep",
	[FILES_WIRE_UPLOAD] = "upload",
	[FILES_WIRE_DOWNLOAD] = "download",
};
#define N_OPS (sizeof(names) / sizeof(names[0]))

static const struct {
	char name;
	size_t offset;
} texts[] = {
	{'p', offsetof(struct files_wire_request, path)},
	{'q', offsetof(struct files_wire_request, pattern)},
	{'o', offsetof(struct files_wire_request, old_text)},
	{'n', offsetof(struct files_wire_request, new_text)},
	{'g', offsetof(struct files_wire_request, only)},
};

static const struct {
	char name;
	size_t offset;
} numbers[] = {
	{'1', offsetof(struct files_wire_request, first_line)},
	{'2', offsetof(struct files_wire_request, last_line)},
	{'l', offsetof(struct files_wire_request, limit)},
	{'m', offsetof(struct files_wire_request, mode)},
	{'c', offsetof(struct files_wire_request, content_len)},
};

static const struct {
	char name;
	size_t offset;
} flags[] = {
	{'W', offsetof(struct files_wire_request, overwrite)},
	{'P', offsetof(struct files_wire_request, parents)},
	{'L', offsetof(struct files_wire_request, literal)},
	{'I', offsetof(struct files_wire_request, ignore_case)},
};

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

const char *files_wire_name(enum files_wire_op op)
{
	return names[op];
}

enum files_wire_op files_wire_find(const char *name)
{
	for (size_t i = 1; i < N_OPS; i++)
		if (strcmp(names[i], name) == 0)
			return (enum files_wire_op)i;
	return FILES_WIRE_NONE;
}

static void put_number(char *to, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = (char)(v >> (8 * i));
}

static uint64_t get_number(const char *from, int n)
{
	uint64_t v = 0;

	for (int i = 0; i < n; i++)
		v |= (uint64_t)(unsigned char)from[i] << (8 * i);
	return v;
}

static void add_field(struct str *out, char name, struct slice bytes)
{
	char head[FIELD_HEAD] = {name};

	put_number(head + 1, bytes.len, 4);
	str_add(out, head, sizeof(head));
	str_add(out, bytes.p, bytes.len);
}

static void add_int(struct str *out, char name, int64_t v)
{
	char bytes[NUMBER_LEN];

	put_number(bytes, (uint64_t)v, NUMBER_LEN);
	add_field(out, name, (struct slice){.p = bytes, .len = sizeof(bytes)});
}

void files_wire_write(struct str *out, const struct files_wire_request *request)
{
	const char *from = (const char *)request;
	size_t start = out->len;

	str_add(out, MAGIC "\0\0\0\0", FILES_WIRE_START);
	add_int(out, '#', request->op);
	for (size_t i = 0; i < N_OF(texts); i++) {
		const struct slice *text =
			(const struct slice *)(const void *)(from + texts[i].offset);

		if (text->len > 0)
			add_field(out, texts[i].name, *text);
	}
	for (size_t i = 0; i < N_OF(numbers); i++)
		add_int(out, numbers[i].name,
			*(const int64_t *)(const void *)(from + numbers[i].offset));
	for (size_t i = 0; i < N_OF(flags); i++)
		add_int(out, flags[i].name, *(const bool *)(from + flags[i].offset));
	put_number(out->p + start + 4, out->len - start - FILES_WIRE_START, 4);
}

long files_wire_head_len(const char start[FILES_WIRE_START])
{
	uint64_t len = get_number(start + 4, 4);

	return memcmp(start, MAGIC, 4) == 0 && len <= FILES_WIRE_HEAD_MAX ? (long)len : -EBADMSG;
}

static int take_field(struct files_wire_request *ret, char name, struct slice bytes)
{
	char *to = (char *)ret;
	int64_t v = bytes.len == NUMBER_LEN ? (int64_t)get_number(bytes.p, NUMBER_LEN) : -1;

	for (size_t i = 0; i < N_OF(texts); i++)
		if (texts[i].name == name) {
			*(struct slice *)(void *)(to + texts[i].offset) = bytes;
			return 0;
		}
	if (bytes.len != NUMBER_LEN)
		return -EBADMSG;
	if (name == '#')
		ret->op = v > 0 && v < (int64_t)N_OPS ? (enum files_wire_op)v : FILES_WIRE_NONE;
	for (size_t i = 0; i < N_OF(numbers); i++)
		if (numbers[i].name == name)
			*(int64_t *)(void *)(to + numbers[i].offset) = v;
	for (size_t i = 0; i < N_OF(flags); i++)
		if (flags[i].name == name)
			*(bool *)(to + flags[i].offset) = v != 0;
	return 0;
}

int files_wire_read(struct slice head, struct files_wire_request *ret)
{
	*ret = (struct files_wire_request){.mode = -1};
	while (head.len > 0) {
		uint64_t len = head.len >= FIELD_HEAD ? get_number(head.p + 1, 4) : 0;
		char name = head.p[0];

		if (head.len < FIELD_HEAD || len > head.len - FIELD_HEAD)
			return -EBADMSG;
		if (take_field(ret, name,
			    (struct slice){.p = head.p + FIELD_HEAD, .len = (size_t)len}) < 0)
			return -EBADMSG;
		head.p += FIELD_HEAD + len;
		head.len -= FIELD_HEAD + (size_t)len;
	}
	return ret->op == FILES_WIRE_NONE || ret->content_len < 0 ? -EBADMSG : 0;
}
