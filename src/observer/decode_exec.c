/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that started, or did not. */
#include <errno.h>

#include "observer/decode_internal.h"
#include "util/mem.h"
#include "util/path.h"

#define ARGV_ITEMS_MAX (WIRE_ARGV_MAX + WIRE_RECORD_MAX) /* each takes a byte at least */
#define CHUNKS_MAX     64 /* programs on their way at once; more lose theirs */

static struct str *chunks_of(struct decode *d, uint32_t host_pid)
{
	unsigned long long key = host_pid;

	return map_find(d->chunks, map_int_key(&key));
}

static void drop_chunks(struct decode *d, uint32_t host_pid)
{
	unsigned long long key = host_pid;
	struct str *s = map_remove(d->chunks, map_int_key(&key));

	if (s)
		str_done(s);
	free(s);
}

int decode_chunk(struct decode *d, const struct wire_chunk *c, struct decode_rest rest)
{
	unsigned long long key = c->head.host_pid;
	struct str *s = chunks_of(d, c->head.host_pid);
	struct slice data;

	if (decode_cut(&rest, c->len, &data) < 0 || data.len > WIRE_CHUNK_MAX)
		return -EBADMSG;
	if (c->offset == 0 && s)
		str_reset(s); /* of an exec whose own record was lost */
	if (c->offset == 0 && !s && map_len(d->chunks) < CHUNKS_MAX)
		s = *map_slot(d->chunks, map_int_key(&key)) = new0(struct str);
	if (s && s->len == c->offset && c->offset < WIRE_ARGV_MAX)
		str_add(s, data.p, data.len);
	return 0;
}

/* Puts the arguments together. Returns whether they are all there. */
static bool join_argv(struct decode *d, const struct wire_exec *e, struct slice own)
{
	struct str *chunks = chunks_of(d, e->head.host_pid);

	str_reset(&d->argv);
	if (e->chunks_len > 0 && chunks)
		str_add(&d->argv, chunks->p, chunks->len);
	drop_chunks(d, e->head.host_pid);
	if (d->argv.len != e->chunks_len)
		return false; /* a piece was lost: the beginning is good */
	str_add(&d->argv, own.p, own.len);
	return d->argv.len == e->argv_bytes && !(e->head.flags & WIRE_ARGV_CUT);
}

static void split_argv(struct decode *d, size_t max)
{
	const char *p = d->argv.p, *end = p + d->argv.len;

	d->n_items = 0;
	while (p < end && d->n_items < max) {
		const char *nul = memchr(p, '\0', (size_t)(end - p));
		size_t len = nul ? (size_t)(nul - p) : (size_t)(end - p);

		if ((d->n_items & (d->n_items - 1)) == 0)
			d->items = mem_grow(
				d->items, d->n_items ? d->n_items * 2 : 1, sizeof(*d->items));
		d->items[d->n_items++] = (struct slice){.p = p, .len = len};
		p += len + 1;
	}
}

static void set_argv(
	struct decode *d, struct event *ev, const struct wire_exec *e, struct slice own)
{
	bool whole = join_argv(d, e, own);

	split_argv(d, e->argc < ARGV_ITEMS_MAX ? e->argc : ARGV_ITEMS_MAX);
	event_set(ev, argv, ((struct event_list){.items = d->items, .n = d->n_items}));
	if (whole && d->n_items == e->argc)
		return;
	event_set(ev, argv_truncated, true);
	event_set(ev, argv_count, e->argc);
	event_set(ev, argv_bytes, (int64_t)e->argv_bytes);
}

static int set_started(
	struct decode *d, struct decoded *one, const struct wire_exec *e, struct decode_rest *rest)
{
	bool internal = e->head.flags & WIRE_INTERNAL1,
	     rooted = !(e->head.flags & (WIRE_CUT1 | WIRE_INTERNAL1));
	struct slice path, cwd;

	if (decode_cut(rest, e->path_len, &path) < 0 || decode_cut(rest, e->cwd_len, &cwd) < 0)
		return -EBADMSG;
	decode_path(path.p, path.len, rooted, &d->paths[0]);
	decode_path(cwd.p, cwd.len, !(e->head.flags & WIRE_CUT2), &d->cwd);
	event_set(&one->ev, path, str_slice(&d->paths[0]));
	if (internal)
		event_set_text(&one->ev, path_state, "memory");
	else if (e->head.flags & WIRE_DELETED1)
		event_set_text(&one->ev, path_state, "deleted");
	if (!rooted && !internal)
		event_set(&one->ev, path_unresolved, true);
	event_set(&one->ev, cwd, str_slice(&d->cwd));
	if (e->file[0])
		event_set(&one->ev, stdout_file, (int64_t)e->file[0]);
	if (e->file[1])
		event_set(&one->ev, stderr_file, (int64_t)e->file[1]);
	return 0;
}

static int set_failed(
	struct decode *d, struct decoded *one, const struct wire_exec *e, struct decode_rest *rest)
{
	struct slice text, base;

	if (decode_cut(rest, e->path_len, &text) < 0 || decode_cut(rest, e->cwd_len, &base) < 0)
		return -EBADMSG;
	if (text.len == 0 || e->skip >= text.len || text.p[text.len - 1] != '\0')
		return -EBADMSG;
	text.p += e->skip;
	text.len -= 1u + e->skip;
	while (e->skip > 0 && text.len > 0 && text.p[0] == '/') {
		text.p++;
		text.len--;
	}
	decode_path(base.p, base.len, !(e->head.flags & WIRE_CUT1), &d->paths[0]);
	one->names[one->n_names++] = (struct decode_name){
		.field = EVENT_F_path,
		.base = str_slice(&d->paths[0]),
		.text = text,
		.follow = true,
		.cut = e->head.flags & WIRE_CUT1,
	};
	return 0;
}

int decode_exec(struct decode *d, const struct wire_exec *e, struct decode_rest rest)
{
	struct decoded *one = decode_add(d, &e->head, EVENT_PROCESS_EXEC);
	struct slice own;
	int r;

	if (e->head.flags & WIRE_FILE)
		r = set_started(d, one, e, &rest);
	else
		r = set_failed(d, one, e, &rest);
	if (r < 0 || decode_cut(&rest, e->argv_len, &own) < 0)
		return -EBADMSG;
	set_argv(d, &one->ev, e, own);
	event_set(&one->ev, ppid, e->ppid);
	if (e->kuid >= d->id_base)
		event_set(&one->ev, uid, e->kuid - d->id_base);
	return 0;
}
