/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/decode.h"

#include <errno.h>
#include <stdio.h>

#include "observer/call_names.h"
#include "observer/decode_internal.h"
#include "util/mem.h"

static const char *const stream_names[] = {"stdout", "stderr"};

struct decode *decode_new(int64_t start_ns, uint32_t id_base)
{
	struct decode *d = new0(struct decode);

	d->start_ns = start_ns;
	d->id_base = id_base;
	d->chunks = map_new();
	return d;
}

void decode_free(struct decode *d)
{
	struct slice key;
	void *value;
	size_t i = 0;

	if (!d)
		return;
	while (map_next(d->chunks, &i, &key, &value)) {
		str_done(value);
		free(value);
	}
	map_free(d->chunks);
	for (size_t k = 0; k < DECODE_NAMES_MAX; k++)
		str_done(&d->paths[k]);
	str_done(&d->cwd);
	str_done(&d->argv);
	free(d->items);
	free(d);
}

struct decoded *decode_add(struct decode *d, const struct wire_head *head, enum event_kind kind)
{
	struct decoded *one = &d->events[d->n++];

	*one = (struct decoded){.ev = {.kind = kind, .pid = head->pid, .task = head->task}};
	one->ev.guest_ns = (int64_t)head->ns - d->start_ns;
	one->doubtful = head->flags & (WIRE_OWN_FILTER | WIRE_SHARED_MM);
	one->made_up = head->flags & WIRE_OWN_FILTER;
	if (head->ret < 0 && head->kind != WIRE_EXIT) {
		event_set(&one->ev, result, -head->ret);
		if (one->made_up)
			event_set(&one->ev, own_filter, true);
	}
	if (head->flags & WIRE_ENTERED)
		event_set(&one->ev, entered, true);
	return one;
}

void decode_path(const char *p, size_t len, bool rooted, struct str *out)
{
	str_reset(out);
	while (len > 0) {
		size_t start = len - 1; /* at its NUL */

		while (start > 0 && p[start - 1] != '\0')
			start--;
		if (rooted || out->len > 0)
			str_putc(out, '/');
		str_add(out, p + start, len - 1 - start);
		len = start;
	}
	if (rooted && out->len == 0)
		str_putc(out, '/');
}

int decode_cut(struct decode_rest *rest, size_t len, struct slice *ret)
{
	if (len > rest->len)
		return -EBADMSG;
	*ret = (struct slice){.p = rest->p, .len = len};
	rest->p += len;
	rest->len -= len;
	return 0;
}

static int decode_fork(struct decode *d, const struct wire_fork *f, struct decode_rest rest)
{
	struct event *ev = &decode_add(d, &f->head, EVENT_PROCESS_FORK)->ev;

	event_set(ev, child_pid, f->child);
	event_set(ev, thread, f->is_thread);
	return 0;
}

/* What was written after the last byte that was copied. */
static void add_totals(struct decode *d, const struct wire_exit *x)
{
	for (size_t i = 0; i < 2; i++) {
		struct event *ev;

		if (x->written[i] == 0)
			continue;
		ev = &decode_add(d, &x->head, EVENT_PROCESS_OUTPUT)->ev;
		event_set_text(ev, stream, stream_names[i]);
		event_set(ev, bytes, (int64_t)x->written[i]);
		event_set(ev, file, (int64_t)x->file[i]);
	}
}

static int decode_exit(struct decode *d, const struct wire_exit *x, struct decode_rest rest)
{
	struct event *ev;
	int status = x->head.ret;

	add_totals(d, x);
	if (x->head.kind == WIRE_TOTALS)
		return 0;
	ev = &decode_add(d, &x->head, EVENT_PROCESS_EXIT)->ev;
	if (status & 0x7f)
		event_set(ev, signal, status & 0x7f);
	else
		event_set(ev, code, status >> 8 & 0xff);
	return 0;
}

static int decode_output(struct decode *d, const struct wire_output *o, struct decode_rest rest)
{
	struct event *ev;
	struct slice data;

	if (o->stream > 1 || decode_cut(&rest, o->len, &data) < 0)
		return -EBADMSG;
	ev = &decode_add(d, &o->head, EVENT_PROCESS_OUTPUT)->ev;
	event_set_text(ev, stream, stream_names[o->stream]);
	if (data.len > 0)
		event_set(ev, data, data);
	event_set(ev, bytes, (int64_t)o->written);
	event_set(ev, file, (int64_t)o->file);
	return 0;
}

static const char *call_name(struct decode *d, const struct wire_head *head)
{
	const char *name = call_names_find(head->nr);

	if (head->flags & WIRE_COMPAT)
		snprintf(d->call, sizeof(d->call), "i386:%u", head->nr);
	else if (head->flags & WIRE_X32)
		snprintf(d->call, sizeof(d->call), "x32:%u", head->nr);
	else if (name)
		return name;
	else
		snprintf(d->call, sizeof(d->call), "%u", head->nr);
	return d->call;
}

/* A call that should have been refused was not: from here on things may happen unseen. */
static int decode_unrefused(struct decode *d, const struct wire_refused *r)
{
	struct event *ev;

	if (!(r->head.flags & (WIRE_COMPAT | WIRE_X32)) && r->head.ret < 0)
		return 0; /* a ring call that failed by itself */
	ev = &decode_add(d, &r->head, EVENT_TRACE_BLIND)->ev;
	event_set_text(ev, call, call_name(d, &r->head));
	event_set_text(ev, reason,
		r->head.flags & (WIRE_COMPAT | WIRE_X32)
			? "system calls of another ABI are not followed"
			: "io_uring works without system calls");
	event_set_text(ev, source_lost, "files");
	return 0;
}

static int decode_refused(struct decode *d, const struct wire_refused *r, struct decode_rest rest)
{
	struct event *ev;

	if (r->head.ret != -EPERM && r->head.ret != -ENOSYS && r->head.ret != -EAFNOSUPPORT)
		return decode_unrefused(d, r);
	ev = &decode_add(d, &r->head, EVENT_SANDBOX_REFUSED)->ev;
	event_set_text(ev, call, call_name(d, &r->head));
	for (size_t i = 0; i < DECODE_ARGS_MAX; i++) {
		snprintf(d->args[i], sizeof(d->args[i]), "0x%llx", (unsigned long long)r->args[i]);
		d->arg_items[i] = slice_of(d->args[i]);
	}
	event_set(ev, args, ((struct event_list){.items = d->arg_items, .n = DECODE_ARGS_MAX}));
	return 0;
}

static int decode_closed(struct decode *d, const struct wire_closed *c, struct decode_rest rest)
{
	return 0; /* whoever watches the mount knows which file it was */
}

/* What those who watch mounts need of a record that was understood. */
static void set_watched(const struct wire_head *head, struct decode_head *ret_head)
{
	if (head->kind == WIRE_CLOSED)
		ret_head->closed = (const struct wire_closed *)head;
	if (!(head->flags & WIRE_MOUNT))
		return;
	if (head->kind == WIRE_CALL) {
		ret_head->file = ((const struct wire_call *)head)->file;
		ret_head->inode = ((const struct wire_call *)head)->inode;
	} else if (head->kind == WIRE_EXEC) {
		ret_head->inode = ((const struct wire_exec *)head)->inode;
	}
}

int decode_record(struct decode *d, const void *record, size_t len, struct decode_head *ret_head)
{
	const struct wire_head *head = record;
	struct decode_rest rest;
	int r = -EBADMSG;

	d->n = 0;
	if (len < sizeof(*head))
		return -EBADMSG;
	*ret_head = (struct decode_head){.exec = head->exec,
		.lost = head->lost,
		.pid = head->pid,
		.host_pid = head->host_pid,
		.ns = head->ns};
#define DECODE_AS(type, function) \
	if (len >= sizeof(struct type)) { \
		rest = (struct decode_rest){ \
			(const char *)record + sizeof(struct type), len - sizeof(struct type)}; \
		r = function(d, record, rest); \
	} \
	break
	switch ((enum wire_kind)head->kind) {
	case WIRE_EXEC:
		DECODE_AS(wire_exec, decode_exec);
	case WIRE_EXIT:
	case WIRE_TOTALS:
		DECODE_AS(wire_exit, decode_exit);
	case WIRE_FORK:
		DECODE_AS(wire_fork, decode_fork);
	case WIRE_CALL:
		DECODE_AS(wire_call, decode_call);
	case WIRE_REFUSED:
		DECODE_AS(wire_refused, decode_refused);
	case WIRE_OUTPUT:
		DECODE_AS(wire_output, decode_output);
	case WIRE_CHUNK:
		DECODE_AS(wire_chunk, decode_chunk);
	case WIRE_CLOSED:
		DECODE_AS(wire_closed, decode_closed);
	}
#undef DECODE_AS
	if (r < 0)
		d->n = 0;
	else
		set_watched(head, ret_head);
	return r < 0 ? r : (int)d->n;
}

struct decoded *decode_get(struct decode *d, size_t i)
{
	return &d->events[i];
}
