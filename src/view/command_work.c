/* SPDX-License-Identifier: Apache-2.0 */
#include "view/command_work.h"

#include <stdlib.h>

#include "util/map.h"
#include "util/mem.h"
#include "view/command_list.h"
#include "view/file_access.h"
#include "view/intern.h"
#include "view/saturate.h"

#define CHUNKS_MAX (1 << 18) /* past these, outputs are only counted */

struct command_work {
	struct intern *intern;
	struct map *owners[COMMAND_WORK_N_LISTS]; /* to struct command_texts */
	struct map *seen;                         /* list, owner and text */
	struct map *told;                         /* pid to struct told */
	struct command_chunk *chunks;
	size_t n_chunks, cap_chunks;
	bool is_full;
	struct str key;
};

struct command_work *command_work_new(void)
{
	struct command_work *work = new0(struct command_work);

	work->intern = intern_new();
	for (int i = 0; i < COMMAND_WORK_N_LISTS; i++)
		work->owners[i] = map_new();
	work->seen = map_new();
	return work;
}

static void free_owners(struct map *owners)
{
	struct slice key;
	void *value;

	for (size_t i = 0; map_next(owners, &i, &key, &value);) {
		free(((struct command_texts *)value)->items);
		free(value);
	}
	map_free(owners);
}

void command_work_free(struct command_work *work)
{
	if (!work)
		return;
	for (int i = 0; i < COMMAND_WORK_N_LISTS; i++)
		free_owners(work->owners[i]);
	for (size_t i = 0; i < work->n_chunks; i++)
		str_done(&work->chunks[i].data);
	free(work->chunks);
	map_free(work->seen);
	intern_free(work->intern);
	str_done(&work->key);
	free(work);
}

struct slice command_work_written(const struct event *ev)
{
	struct slice path = ev->path;

	if ((event_has(ev, result) && ev->result) || file_access_is_nowhere(ev))
		return (struct slice){0};
	if (ev->kind == EVENT_FILE_RENAME)
		path = ev->to;
	else if (ev->kind == EVENT_FILE_OPEN && !file_access_changes(ev) && !file_access_made(ev))
		return (struct slice){0};
	else if (ev->kind != EVENT_FILE_OPEN && ev->kind != EVENT_FILE_TRUNCATE &&
		 ev->kind != EVENT_FILE_LINK)
		return (struct slice){0};
	if (view_filter_is_kernel_path(path))
		return (struct slice){0};
	return path;
}

static bool is_new(struct command_work *work, enum command_work_list list, struct slice owner,
	struct slice text)
{
	void **slot;

	str_reset(&work->key);
	str_putc(&work->key, (char)list);
	str_add(&work->key, owner.p, owner.len);
	str_putc(&work->key, '\0');
	str_add(&work->key, &text.p, sizeof(text.p)); /* interned: the place is the text */
	slot = map_slot(work->seen, str_slice(&work->key));
	if (*slot)
		return false;
	*slot = work;
	return true;
}

void command_work_add(struct command_work *work, enum command_work_list list, struct slice owner,
	struct slice text)
{
	void **slot = map_slot(work->owners[list], owner);
	struct command_texts *texts = *slot ? *slot : (*slot = new0(struct command_texts));

	text = intern_text(work->intern, text);
	if (texts->n == COMMAND_FILES_MAX) {
		texts->is_cut = texts->is_cut || is_new(work, list, owner, text);
		return;
	}
	if (!is_new(work, list, owner, text))
		return;
	if (texts->n == texts->cap) {
		texts->cap = texts->cap ? texts->cap * 2 : 4;
		texts->items = mem_grow(texts->items, texts->cap, sizeof(*texts->items));
	}
	texts->items[texts->n++] = text;
}

const struct command_texts *command_work_texts(
	const struct command_work *work, enum command_work_list list, struct slice owner)
{
	return map_find(work->owners[list], owner);
}

/* The last chunk, where it goes on; else a new one. */
static struct command_chunk *chunk_for(
	struct command_work *work, size_t node, int stream, int64_t file)
{
	struct command_chunk *chunk;

	if (work->n_chunks) {
		chunk = &work->chunks[work->n_chunks - 1];
		if (chunk->node == node && chunk->stream == stream && chunk->file == file)
			return chunk;
	}
	if (work->n_chunks == CHUNKS_MAX)
		return NULL;
	if (work->n_chunks == work->cap_chunks) {
		work->cap_chunks = work->cap_chunks ? work->cap_chunks * 2 : 16;
		work->chunks = mem_grow(work->chunks, work->cap_chunks, sizeof(*work->chunks));
	}
	chunk = &work->chunks[work->n_chunks++];
	*chunk = (struct command_chunk){.node = node, .stream = stream, .file = file};
	return chunk;
}

void command_work_add_output(struct command_work *work, size_t node, const struct event *ev)
{
	int stream = slice_is(ev->stream, "stderr");
	int64_t written = event_has(ev, bytes) ? ev->bytes : (int64_t)ev->data.len;
	struct command_chunk *chunk = chunk_for(work, node, stream, ev->file);
	size_t room;

	if (!chunk) {
		work->is_full = true;
		return;
	}
	room = COMMAND_OUTPUT_MAX - chunk->data.len;
	/* What comes behind bytes that were not copied would read as if it followed. */
	if ((int64_t)chunk->data.len == chunk->written)
		str_add(&chunk->data, ev->data.p, ev->data.len < room ? ev->data.len : room);
	chunk->written = saturate_add(chunk->written, written);
}

size_t command_work_n_chunks(const struct command_work *work)
{
	return work->n_chunks;
}

const struct command_chunk *command_work_chunk(const struct command_work *work, size_t i)
{
	return &work->chunks[i];
}

bool command_work_is_full(const struct command_work *work)
{
	return work->is_full;
}
