/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/stack.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/kept.h"
#include "manifest/manifest_internal.h"
#include "util/mem.h"
#include "util/scoped.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

const char *stack_dir(const struct change_layer *layer, size_t number)
{
	if (number > layer->n_stack)
		return layer->kept;
	return number == 0 ? layer->upper : layer->stack[number - 1].dir;
}

uint32_t stack_id(const struct change_layer *layer, size_t number, const struct change_set_map *map,
	uint32_t id)
{
	uint32_t base = number == 0 ? layer->id_base : layer->stack[number - 1].base;
	uint32_t inner = base ? id - base : change_set_inner_id(layer, map, id);

	return inner < CHANGE_SET_ID_RANGE ? layer->id_base + inner : id;
}

int stack_open(const struct change_layer *layer, struct stack *ret)
{
	struct stack stack = {.layer = layer, .n = layer->n_stack + 1};

	stack.fds = new0_n(int, stack.n + 1);
	stack.fds[stack.n] = -1;
	for (size_t i = 0; i < stack.n; i++) {
		stack.fds[i] = open(stack_dir(layer, i), FOLDER);
		if (stack.fds[i] < 0 && (errno != ENOENT || stack.n == 1)) {
			int r = -errno;

			stack.n = i;
			stack.fds[i] = -1;
			stack_done(&stack);
			return r;
		}
	}
	stack.fds[stack.n] = layer->kept ? kept_open_folder(layer) : -ENOENT;
	*ret = stack;
	if (stack.fds[stack.n] < 0 && stack.fds[stack.n] != -ENOENT) {
		int r = stack.fds[stack.n];

		stack_done(ret);
		return r;
	}
	return 0;
}

void stack_done(struct stack *stack)
{
	for (size_t i = 0; stack->fds && i <= stack->n; i++)
		scoped_close(&stack->fds[i]);
	free(stack->fds);
	*stack = (struct stack){0};
}

void stack_folder_done(struct stack_folder *folder)
{
	for (size_t i = 0; i < folder->n; i++) {
		scoped_close(&folder->parts[i].fd);
		free(folder->parts[i].path);
	}
	free(folder->parts);
	*folder = (struct stack_folder){0};
}

void stack_entry_done(struct stack_entry *entry)
{
	upper_done(&entry->up);
	free(entry->path);
	free(entry->stored);
	stack_folder_done(&entry->folder);
	*entry = (struct stack_entry){0};
}

/* Takes fd over. */
static void add_part(struct stack_folder *folder, int fd, size_t layer, bool xwhiteouts, char *path)
{
	folder->parts = mem_grow(folder->parts, folder->n + 1, sizeof(*folder->parts));
	folder->parts[folder->n++] = (struct stack_part){
		.fd = fd, .layer = layer, .xwhiteouts = xwhiteouts, .path = path};
}

int stack_top(const struct stack *stack, struct stack_folder *ret)
{
	*ret = (struct stack_folder){0};
	for (size_t i = 0; i < stack->n && !ret->opaque; i++) {
		struct upper_entry top;
		int fd, r;

		if (stack->fds[i] < 0)
			continue;
		r = upper_read_dir(stack->fds[i], &top);
		if (r < 0)
			return r;
		fd = openat(stack->fds[i], ".", FOLDER);
		if (fd < 0) {
			r = -errno;
			upper_done(&top);
			return r;
		}
		add_part(ret, fd, i, top.has_xwhiteouts, mem_dup(""));
		ret->opaque = top.opaque;
		upper_done(&top);
	}
	return 0;
}

bool stack_has(const struct stack_folder *folder, const char *name)
{
	struct stat st;

	for (size_t i = 0; i < folder->n; i++)
		if (fstatat(folder->parts[i].fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	return false;
}

struct once {
	struct map *seen;
	int (*on_name)(void *data, const char *name);
	void *data;
};

static int on_part_name(void *data, const char *name)
{
	struct once *once = data;
	void **slot = map_slot(once->seen, slice_of(name));

	if (*slot)
		return 0;
	*slot = once;
	return once->on_name(once->data, name);
}

int stack_each_name(
	const struct stack_folder *folder, int (*on_name)(void *data, const char *name), void *data)
{
	struct once once = {.on_name = on_name, .data = data};
	int r = 0;

	if (folder->n == 1)
		return scan_each_name(folder->parts[0].fd, on_name, data);
	once.seen = map_new();
	for (size_t i = 0; r >= 0 && i < folder->n; i++)
		r = scan_each_name(folder->parts[i].fd, on_part_name, &once);
	map_free(once.seen);
	return r;
}

/* ---- one name, layer by layer ---- */

/* Where the layers below are looked into: a name in the parts of the same folder, or a path from their tops. */
struct search {
	const struct stack *stack;
	const struct stack_folder *folder;
	char *name; /* NULL: path */
	char *path;
	bool is_over; /* nothing below shows through */
};

static void search_done(struct search *s)
{
	free(s->name);
	free(s->path);
}

/* rest: of a path, behind the folder that the redirect is about. One from the top goes on below an opaque folder above it. */
static void redirect(struct search *s, const char *to, const char *rest)
{
	char *next;

	if (to[0] == '/')
		s->is_over = false;
	if (to[0] != '/' && (s->name || !s->path)) {
		free(s->name);
		s->name = mem_dup(to);
		return;
	}
	if (to[0] == '/') {
		next = mem_printf("%s%s", to + 1, rest);
	} else {
		size_t len = strlen(s->path) - strlen(rest);
		scoped_mem char *until = mem_copy(s->path, len);
		char *slash = strrchr(until, '/');

		if (slash)
			slash[1] = '\0';
		next = mem_printf("%s%s%s", slash ? until : "", to, rest);
	}
	free(s->name);
	s->name = NULL;
	free(s->path);
	s->path = next;
}

/* One name of a path in one layer; the caller's to end. *ret_fd: the folder itself. */
static int step(struct search *s, int dirfd, bool *xwhiteouts, const char *name, const char *rest,
	int *ret_fd)
{
	struct upper_entry up;
	int r = upper_read(dirfd, name, *xwhiteouts, &up);

	*ret_fd = -1;
	if (r < 0)
		return r;
	if (up.whiteout || !S_ISDIR(up.st.st_mode)) {
		s->is_over = true;
		r = -ENOENT;
	} else {
		*ret_fd = openat(dirfd, name, FOLDER);
		r = *ret_fd < 0 ? -errno : 0;
		s->is_over = s->is_over || up.opaque;
		*xwhiteouts = up.has_xwhiteouts;
		if (up.redirect && !up.opaque)
			redirect(s, up.redirect, rest);
	}
	upper_done(&up);
	return r;
}

/* What holds the last name of the path in a layer. ret_part->path: up to there. */
static int walk(struct search *s, size_t layer, struct stack_part *ret_part, char **ret_name)
{
	scoped_mem char *path = mem_dup(s->path);
	scoped_fd int fd = openat(s->stack->fds[layer], ".", FOLDER);
	bool xwhiteouts = false;
	char *at = path, *slash;
	int next, r = fd < 0 ? -errno : 0;

	while (r == 0 && (slash = strchr(at, '/'))) {
		const char *rest;

		assert(s->path);
		/* Counted from the end: a redirect has changed what is before. */
		rest = s->path + strlen(s->path) - strlen(slash);
		*slash = '\0';
		r = step(s, fd, &xwhiteouts, at, rest, &next);
		*slash = '/';
		scoped_close(&fd);
		fd = next;
		at = slash + 1;
	}
	if (r < 0)
		return r;
	*ret_name = mem_dup(at);
	*ret_part = (struct stack_part){.fd = take_fd(&fd),
		.layer = layer,
		.xwhiteouts = xwhiteouts,
		.path = at > path ? mem_copy(path, (size_t)(at - path - 1)) : mem_dup("")};
	return 0;
}

/* Where a layer would hold it: a part that the caller ends, and the name in it. */
static int place_in(struct search *s, size_t layer, struct stack_part *ret_part, char **ret_name)
{
	if (s->stack->fds[layer] < 0)
		return -ENOENT;
	if (!s->name)
		return walk(s, layer, ret_part, ret_name);
	for (size_t i = 0; i < s->folder->n; i++) {
		const struct stack_part *part = &s->folder->parts[i];

		if (part->layer != layer)
			continue;
		*ret_part = *part;
		ret_part->path = mem_dup(part->path);
		ret_part->fd = openat(part->fd, ".", FOLDER);
		*ret_name = mem_dup(s->name);
		return ret_part->fd < 0 ? -errno : 0;
	}
	return -ENOENT;
}

/* Adds the folder that one layer holds; over where something else stands there. */
static int add_folder(struct search *s, size_t layer, const struct stack_part *in, const char *name,
	struct stack_folder *ret)
{
	struct upper_entry up;
	int fd, r = upper_read(in->fd, name, in->xwhiteouts, &up);

	if (r < 0)
		return r;
	if (up.whiteout || !S_ISDIR(up.st.st_mode)) {
		s->is_over = true;
	} else {
		fd = openat(in->fd, name, FOLDER);
		r = fd < 0 ? -errno : 0;
		if (r == 0)
			add_part(ret, fd, layer, up.has_xwhiteouts, scan_join(in->path, name));
		s->is_over = s->is_over || up.opaque;
		if (up.redirect && !up.opaque)
			redirect(s, up.redirect, "");
	}
	upper_done(&up);
	return r;
}

/* The net redirect, from the top to the host folder; none where nothing of that shows. */
static void put_redirect(const struct search *s, const char *name, struct upper_entry *up)
{
	free(up->redirect);
	up->redirect = NULL;
	if (s->is_over)
		return;
	if (!s->name)
		up->redirect = mem_printf("/%s", s->path);
	else if (strcmp(s->name, name) != 0)
		up->redirect = mem_dup(s->name);
}

static int gather(struct search *s, const char *name, struct stack_entry *e)
{
	int r = 0;

	for (size_t layer = e->layer + 1; r == 0 && !s->is_over && layer < s->stack->n; layer++) {
		struct stack_part in = {.fd = -1};
		scoped_mem char *at = NULL;

		r = place_in(s, layer, &in, &at);
		if (r == 0)
			r = add_folder(s, layer, &in, at, &e->folder);
		scoped_close(&in.fd);
		free(in.path);
		r = r == -ENOENT ? 0 : r;
	}
	if (s->is_over)
		e->up.opaque = true;
	put_redirect(s, name, &e->up);
	return r;
}

/* One layer's file in which the data may be. 1: it is. */
static int try_data(
	struct search *s, const struct stack_part *in, const char *name, struct stack_entry *e)
{
	struct upper_entry up;
	int r = upper_read(in->fd, name, in->xwhiteouts, &up);

	if (r < 0)
		return r;
	if (up.whiteout || !S_ISREG(up.st.st_mode)) {
		s->is_over = true;
	} else if (up.metacopy) {
		if (up.redirect)
			redirect(s, up.redirect, "");
	} else {
		e->stored = scan_join(in->path, name);
		e->stored_layer = in->layer;
		r = 1;
	}
	upper_done(&up);
	return r;
}

static int find_kept(const struct stack *stack, struct stack_entry *e)
{
	scoped_mem char *name = NULL;
	int r;

	if (e->layer == 0 || e->stored || stack->fds[stack->n] < 0)
		return 0;
	name = kept_name(stack->layer, e->layer, e->path);
	r = kept_has(stack->fds[stack->n], name);
	if (r <= 0)
		return r;
	e->stored = take(&name);
	e->stored_layer = stack->n;
	return 0;
}

static int find_data(struct search *s, const char *name, struct stack_entry *e)
{
	int r = 0;

	for (size_t layer = e->layer + 1; r == 0 && !s->is_over && layer < s->stack->n; layer++) {
		struct stack_part in = {.fd = -1};
		scoped_mem char *at = NULL;

		r = place_in(s, layer, &in, &at);
		if (r == 0)
			r = try_data(s, &in, at, e);
		scoped_close(&in.fd);
		free(in.path);
		r = r == -ENOENT ? 0 : r;
	}
	put_redirect(s, name, &e->up);
	return r < 0 ? r : 0;
}

/* The file it was copied up from may itself be a copy, in a layer below: what that one was copied from counts. */
static void chase_origin(const struct stack *stack, struct stack_entry *e)
{
	for (size_t i = e->layer + 1; i < stack->n && e->up.origin_len > 0; i++)
		if (stack->fds[i] < 0 || !upper_follow_origin(stack->fds[i], &e->up))
			return;
}

static int read_rest(const struct stack *stack, const struct stack_folder *folder,
	const struct stack_part *part, const char *name, struct stack_entry *e)
{
	struct search s = {.stack = stack, .folder = folder, .name = mem_dup(name)};
	int fd, r = 0;

	if (e->up.redirect)
		redirect(&s, e->up.redirect, "");
	s.is_over = e->up.opaque;
	if (S_ISDIR(e->up.st.st_mode)) {
		fd = openat(part->fd, name, FOLDER);
		if (fd >= 0)
			add_part(&e->folder, fd, part->layer, e->up.has_xwhiteouts,
				mem_dup(e->path));
		r = fd < 0 ? -errno : gather(&s, name, e);
		e->folder.opaque = e->up.opaque;
	} else if (e->up.metacopy) {
		r = find_data(&s, name, e);
		if (r == 0)
			r = find_kept(stack, e);
	}
	search_done(&s);
	chase_origin(stack, e);
	return r;
}

int stack_read(const struct stack *stack, const struct stack_folder *folder, const char *name,
	struct stack_entry *ret)
{
	*ret = (struct stack_entry){0};
	for (size_t i = 0; i < folder->n; i++) {
		const struct stack_part *part = &folder->parts[i];
		int r = upper_read(part->fd, name, part->xwhiteouts, &ret->up);

		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		ret->layer = part->layer;
		ret->dirfd = part->fd;
		ret->path = scan_join(part->path, name);
		return ret->up.whiteout ? 0 : read_rest(stack, folder, part, name, ret);
	}
	return -ENOENT;
}
