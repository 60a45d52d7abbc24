/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/change_set.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/journal.h"
#include "manifest/lower.h"
#include "util/base64.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/str.h"

#define FILE_MAX (4 << 20)

/* A member that holds bytes: "<key>_b64" where it is not UTF-8. NULL where there is none or it holds NUL. */
static char *get_bytes(const json_t *object, const char *key)
{
	scoped_mem char *b64_key = mem_printf("%s_b64", key);
	const json_t *text = json_object_get(object, key), *b64 = json_object_get(object, b64_key);
	scoped_str struct str out = {0};

	if (!b64)
		return mem_dup(json_string_value(text));
	if (!json_is_string(b64) || base64_decode(slice_of(json_string_value(b64)), &out) < 0 ||
		memchr(out.p, '\0', out.len))
		return NULL;
	return str_take(&out);
}

static int64_t get_int(const json_t *object, const char *key, int64_t otherwise)
{
	const json_t *v = json_object_get(object, key);

	return json_is_integer(v) ? (int64_t)json_integer_value(v) : otherwise;
}

static void layer_done(struct change_layer *layer)
{
	free(layer->guest);
	free(layer->lower);
	free(layer->upper);
	free(layer->folder_id);
	free(layer->kept);
	for (size_t i = 0; i < layer->n_stack + layer->n_below; i++)
		free(layer->stack[i].dir);
	free(layer->stack);
}

void change_set_free(struct change_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->n_layers; i++)
		layer_done(&set->layers[i]);
	for (size_t i = 0; i < set->n_rws; i++) {
		layer_done(&set->rws[i].place);
		free(set->rws[i].before);
	}
	free(set->rws);
	free(set->layers);
	journal_free(set->journal);
	free(set->dir);
	free(set);
}

static bool get_id(const json_t *v, uint32_t *ret)
{
	json_int_t id = json_integer_value(v);

	if (!json_is_integer(v) || id < 0 || id > UINT32_MAX)
		return false;
	*ret = (uint32_t)id;
	return true;
}

static bool get_map(const json_t *lines, struct change_set_map *map)
{
	const json_t *line;
	size_t i;

	if (json_array_size(lines) > CHANGE_SET_MAP_MAX)
		return false;
	json_array_foreach(lines, i, line)
	{
		if (!get_id(json_array_get(line, 0), &map->lines[i].disk) ||
			!get_id(json_array_get(line, 1), &map->lines[i].host) ||
			!get_id(json_array_get(line, 2), &map->lines[i].n))
			return false;
		map->n++;
	}
	return true;
}

static int read_owner(
	const struct change_set *set, const json_t *object, struct change_layer *layer)
{
	int64_t uid = get_int(object, "owner_uid", 0), gid = get_int(object, "owner_gid", 0);
	int64_t base = set->id_base;

	if (uid < 0 || uid > UINT32_MAX || gid < 0 || gid > UINT32_MAX || base < 0 ||
		base > UINT32_MAX ||
		!get_map(json_object_get(object, "uid_map"), &layer->uid_map) ||
		!get_map(json_object_get(object, "gid_map"), &layer->gid_map))
		return -EBADMSG;
	layer->owner_uid = (uid_t)uid;
	layer->owner_gid = (gid_t)gid;
	layer->id_base = (uint32_t)base;
	return 0;
}

static bool get_stack(const json_t *lowers, struct change_layer *layer)
{
	const json_t *object;
	size_t i;

	json_array_foreach(lowers, i, object)
	{
		struct change_shared shared = {.dir = get_bytes(object, "dir")};

		layer->stack = mem_grow(layer->stack, layer->n_stack + 1, sizeof(*layer->stack));
		layer->stack[layer->n_stack++] = shared;
		if (!shared.dir || shared.dir[0] != '/' || layer->n_stack > CHANGE_SET_STACK_MAX ||
			!get_id(json_object_get(object, "base"),
				&layer->stack[layer->n_stack - 1].base))
			return false;
	}
	return true;
}

/* Of an image's root the image's own layers lie below, and what sandboxes left over them is in the stack. */
static void part_image(struct change_layer *layer)
{
	while (layer->n_stack > 0) {
		const struct change_shared *last = &layer->stack[layer->n_stack - 1];

		if (layer->n_below > 0 && !strstr(last->dir, "/layers/sha256-"))
			break;
		layer->below_base = last->base;
		layer->n_stack--;
		layer->n_below++;
	}
}

static int add_layer(struct change_set *set, const json_t *object, const char *lower_key, int n)
{
	struct change_layer *layer;
	char *upper;

	if (set->n_layers >= CHANGE_SET_LAYERS_MAX)
		return -E2BIG;
	set->layers = mem_grow(set->layers, set->n_layers + 1, sizeof(*set->layers));
	layer = &set->layers[set->n_layers++];
	*layer = (struct change_layer){.n = n,
		.counted = json_is_true(json_object_get(object, "counted")),
		.is_copied = json_is_true(json_object_get(object, "copied")),
		.folder_id = mem_dup(json_string_value(json_object_get(object, "folder_id")))};
	layer->kept = mem_printf("%s/kept", set->dir);
	layer->guest = get_bytes(object, "guest");
	layer->lower = get_bytes(object, lower_key);
	if (!get_stack(json_object_get(object, "lowers"), layer))
		return -EBADMSG;
	if (!layer->lower)
		part_image(layer);
	upper = get_bytes(object, "upper");
	if (upper && upper[0] != '/') {
		layer->upper = mem_printf("%s/%s", set->dir, upper);
		free(upper);
	} else {
		layer->upper = upper;
	}
	if (!layer->guest || !layer->upper || layer->guest[0] != '/' ||
		(layer->lower ? layer->lower[0] != '/' : layer->n_below == 0 || n >= 0))
		return -EBADMSG;
	return read_owner(set, object, layer);
}

static int add_rw(struct change_set *set, const json_t *object)
{
	struct change_rw *rw;

	if (set->n_rws >= CHANGE_SET_LAYERS_MAX)
		return -E2BIG;
	set->rws = mem_grow(set->rws, set->n_rws + 1, sizeof(*set->rws));
	rw = &set->rws[set->n_rws++];
	*rw = (struct change_rw){.place = {.n = -1}, .before = get_bytes(object, "before")};
	rw->place.guest = get_bytes(object, "guest");
	rw->place.lower = get_bytes(object, "host");
	if (!rw->place.guest || !rw->place.lower || rw->place.guest[0] != '/' ||
		rw->place.lower[0] != '/' || !rw->before || strchr(rw->before, '/'))
		return -EBADMSG;
	return read_owner(set, object, &rw->place);
}

static int add_layers(struct change_set *set, const json_t *root)
{
	const json_t *mounts = json_object_get(root, "mounts"),
		     *own = json_object_get(root, "root");
	const json_t *object;
	size_t i;
	int r;

	json_array_foreach(mounts, i, object)
	{
		int64_t n = get_int(object, "n", -1);

		if (n < 0 || n > INT32_MAX)
			return -EBADMSG;
		r = add_layer(set, object, "host", (int)n);
		if (r < 0)
			return r;
	}
	json_array_foreach(own, i, object)
	{
		r = add_layer(set, object, "lower", -1);
		if (r < 0)
			return r;
	}
	json_array_foreach(json_object_get(root, "rw"), i, object)
	{
		r = add_rw(set, object);
		if (r < 0)
			return r;
	}
	return 0;
}

static int parse(struct change_set *set, const struct str *text)
{
	json_error_t why;
	json_t *root = json_loadb(text->p ? text->p : "", text->len, JSON_REJECT_DUPLICATES, &why);
	int r;

	if (!json_is_object(root)) {
		json_decref(root);
		return -EBADMSG;
	}
	set->created_ns = get_int(root, "created_ns", set->created_ns);
	set->id_base = get_int(root, "base", 0);
	r = add_layers(set, root);
	json_decref(root);
	return r;
}

/* Whoever may write this file chooses where apply writes as root. */
static int read_trusted(int dirfd, struct str *out, int64_t *ret_written_ns)
{
	scoped_fd int fd = openat(dirfd, "changes.json", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & 022))
		return -EPERM;
	*ret_written_ns = clock_ns(st.st_mtim);
	return fdio_read_all(fd, FILE_MAX, out);
}

/* An apply may have been killed between the line of a rename and the rename, and a power cut takes back several. */
static int drop_undone(struct change_set *set, const struct change_layer *layer, struct err *err)
{
	const struct rename *last = journal_last_rename(set->journal, layer->n);
	scoped_fd int top = last ? lower_open(layer->lower) : -1;
	struct stat st;
	int r = 0;

	if (top < 0)
		return 0; /* without the folder there is nothing to find in it */
	for (; last; last = journal_last_rename(set->journal, layer->n)) {
		r = beneath_stat(top, last->from, &st);
		if (r < 0 || st.st_ino != last->inode)
			break;
		journal_drop_rename(set->journal, layer->n);
	}
	/* A link on the way is the host's, or the sandbox's that was applied: nothing of before is there. */
	if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -ELOOP)
		return err_set(err, r, "look at '%s/%s': %m", layer->lower, last->from);
	return 0;
}

int change_set_open(const char *dir, struct change_set **ret_set, struct err *err)
{
	scoped(change_set) struct change_set *set = new0(struct change_set);
	scoped_str struct str text = {0};
	scoped_fd int dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (dirfd < 0)
		return err_set(err, -errno, "change set '%s': %m", dir);
	set->dir = mem_dup(dir);
	r = read_trusted(dirfd, &text, &set->created_ns);
	if (r < 0)
		return err_set(err, r, "change set '%s/changes.json': %m", dir);
	r = parse(set, &text);
	if (r < 0)
		return err_set(err, r, "change set '%s/changes.json' is not one of ours", dir);
	r = journal_open(dir, &set->journal, err);
	for (size_t i = 0; r == 0 && i < set->n_layers; i++)
		r = drop_undone(set, &set->layers[i], err);
	if (r < 0)
		return r;
	*ret_set = take(&set);
	return 0;
}

bool change_layer_lacks_handles(const struct change_layer *layer)
{
	return layer->is_copied || (layer->folder_id && !layer->folder_id[0]);
}

const struct change_layer *change_set_find(
	const struct change_set *set, struct slice guest_path, struct slice *ret_rest)
{
	const struct change_layer *best = NULL;
	size_t best_len = 0;

	for (size_t i = 0; i < set->n_layers; i++) {
		struct slice guest = slice_of(set->layers[i].guest);

		if (!path_is_beneath(guest_path, guest) || (best && guest.len <= best_len))
			continue;
		best = &set->layers[i];
		best_len = guest.len;
	}
	if (best && guest_path.len > best_len && best_len > 1)
		best_len++;
	if (best)
		*ret_rest = (struct slice){
			.p = guest_path.p + best_len, .len = guest_path.len - best_len};
	return best;
}

uint32_t change_set_inner_id(
	const struct change_layer *layer, const struct change_set_map *map, uint32_t id)
{
	for (size_t i = 0; i < map->n; i++)
		if (id - map->lines[i].disk < map->lines[i].n)
			return map->lines[i].host + (id - map->lines[i].disk) - layer->id_base;
	return map->n > 0 ? CHANGE_SET_ID_RANGE : id - layer->below_base;
}
