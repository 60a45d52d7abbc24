/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/freeze.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/pending.h"
#include "manifest/change_set.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/path.h"

#define LAYERS_MAX 100000 /* numbers tried for one sandbox */

/* One that cannot be read may have any. */
static bool may_have_entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	bool found = false;

	if (!dir)
		return errno != ENOENT;
	while (!found && (errno = 0, e = readdir(dir)))
		found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	found = found || errno;
	(void)closedir(dir);
	return found;
}

/* Only the top folder itself may have been: its rights are the upper's, from when that was made. */
static bool is_changed(const struct change_layer *layer)
{
	struct stat up, low = {.st_mode = 0755};

	if (may_have_entries(layer->upper))
		return true;
	if (layer->n_stack + layer->n_below > 0)
		(void)stat(layer->stack[0].dir, &low);
	else if (layer->n >= 0)
		(void)stat(layer->lower, &low);
	return stat(layer->upper, &up) == 0 &&
	       (((up.st_mode ^ low.st_mode) & 0777) || up.st_uid != layer->id_base ||
		       up.st_gid != layer->id_base);
}

static int sync_folder(const char *path)
{
	scoped_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* ---- written down ---- */

static int write_layer(const char *dir, const struct at_rest *at)
{
	scoped_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);

	jsonw_object(&j);
	jsonw_kint(&j, "v", 1);
	jsonw_ktext(&j, "kind", "upper");
	jsonw_kint(&j, "base", at->rest->id_base);
	jsonw_kint(&j, "created_ns", clock_wall_ms() * CLOCK_NS_PER_MS);
	jsonw_ktext(&j, "of", at->id);
	jsonw_object_end(&j);
	str_putc(&text, '\n');
	return fd < 0 ? -errno : fdio_replace(fd, "layer.json", text.p, text.len, 0600);
}

/* A new folder of the store, without its tree yet. */
static int make_layer(
	const struct cli *cli, const struct at_rest *at, char **ret_fs, struct err *err)
{
	for (int n = 1; n < LAYERS_MAX; n++) {
		scoped_mem char *dir = mem_printf("%s/layers/%s.%d", cli->state_dir, at->id, n);
		int r = mkdir(dir, 0700) < 0 ? -errno : 0;

		if (r == -EEXIST)
			continue;
		if (r == 0)
			r = write_layer(dir, at);
		if (r < 0)
			return err_set(err, r, "make '%s': %m", dir);
		*ret_fs = mem_printf("%s/fs", dir);
		return 0;
	}
	return err_set(err, -EMFILE, "sandbox %s has left too many layers", at->id);
}

/* In front of those that lie there already: topmost first. */
static void put_on_top(struct spec *spec, const char *guest, const char *fs, uint32_t base)
{
	struct spec_lower top;

	spec_add_lower(spec, guest, fs, base);
	top = spec->lowers[spec->n_lowers - 1];
	memmove(spec->lowers + 1, spec->lowers, (spec->n_lowers - 1) * sizeof(top));
	spec->lowers[0] = top;
}

static size_t count_at(const struct spec *spec, const char *guest)
{
	size_t n = 0;

	for (size_t i = 0; i < spec->n_lowers; i++)
		n += strcmp(spec->lowers[i].guest, guest) == 0;
	return n;
}

/* Before anything is written down: one over more than can be joined could not be resumed either. */
static int check_room(const struct at_rest *at, const struct change_set *set, struct err *err)
{
	const struct spec *spec = at->rest->spec;
	size_t n = spec->n_lowers;

	for (size_t i = 0; i < set->n_layers; i++) {
		const char *guest = set->layers[i].guest;

		if (is_changed(&set->layers[i]) &&
			(count_at(spec, guest) >= SPEC_LOWERS_AT_MAX || n++ >= SPEC_LOWERS_MAX))
			return err_set(err, -E2BIG,
				"what sandbox %s changed at '%s' is one layer more than can be "
				"joined: it can be resumed, but not forked",
				at->id, guest);
	}
	return 0;
}

static int plan(const struct cli *cli, struct at_rest *at, const struct change_set *set,
	bool *ret_any, struct err *err)
{
	int r = check_room(at, set, err);

	*ret_any = false;
	for (size_t i = 0; r == 0 && i < set->n_layers; i++) {
		scoped_mem char *fs = NULL;

		if (!is_changed(&set->layers[i]))
			continue;
		r = make_layer(cli, at, &fs, err);
		if (r == 0)
			put_on_top(at->rest->spec, set->layers[i].guest, fs, at->rest->id_base);
		*ret_any = true;
	}
	return r;
}

static json_t *lowers_of(const struct spec *spec, const char *guest)
{
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);

	jsonw_array(&j);
	for (size_t i = 0; i < spec->n_lowers; i++) {
		if (strcmp(spec->lowers[i].guest, guest) != 0)
			continue;
		jsonw_object(&j);
		jsonw_ktext(&j, "dir", spec->lowers[i].dir);
		jsonw_kint(&j, "base", spec->lowers[i].base);
		jsonw_object_end(&j);
	}
	jsonw_array_end(&j);
	return json_loadb(text.p, text.len, 0, NULL);
}

/* The layers of changes.json in the order of the set: mounts, then the root's own. */
static json_t *object_of(json_t *root, size_t i)
{
	json_t *mounts = json_object_get(root, "mounts");
	size_t n = json_array_size(mounts);

	return i < n ? json_array_get(mounts, i)
	             : json_array_get(json_object_get(root, "root"), i - n);
}

static int rewrite(int dirfd, const struct change_set *set, const struct spec *spec, json_t *root)
{
	scoped_mem char *text = NULL;

	for (size_t i = 0; i < set->n_layers; i++) {
		json_t *lowers = lowers_of(spec, set->layers[i].guest);

		if (json_array_size(lowers) > 0)
			(void)json_object_set(object_of(root, i), "lowers", lowers);
		json_decref(lowers);
	}
	text = json_dumps(root, JSON_COMPACT);
	return text ? fdio_replace(dirfd, "changes.json", text, strlen(text), 0600) : -EINVAL;
}

static int write_changes(const struct change_set *set, const struct spec *spec, struct err *err)
{
	scoped_fd int dirfd = open(set->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped_str struct str old = {0};
	json_t *root;
	int r = dirfd < 0 ? -errno : fdio_read_file(dirfd, "changes.json", 4 << 20, &old);

	root = r < 0 ? NULL : json_loadb(old.p, old.len, JSON_REJECT_DUPLICATES, NULL);
	if (r == 0 && !root)
		r = -EBADMSG;
	if (r == 0)
		r = rewrite(dirfd, set, spec, root);
	json_decref(root);
	return r < 0 ? err_set(err, r, "write '%s/changes.json': %m", set->dir) : 0;
}

/* ---- done ---- */

static const struct change_layer *find_layer(const struct change_set *set, const char *guest)
{
	for (size_t i = 0; i < set->n_layers; i++)
		if (strcmp(set->layers[i].guest, guest) == 0)
			return &set->layers[i];
	return NULL;
}

static int move_upper(const char *upper, const char *fs)
{
	scoped_mem char *from = mem_dup(upper), *to = mem_dup(fs);

	if (rename(upper, fs) < 0)
		return -errno;
	*strrchr(from, '/') = *strrchr(to, '/') = '\0';
	return sync_folder(to) < 0 || sync_folder(from) < 0 ? -EIO : 0;
}

static bool is_of(const struct at_rest *at, const char *dir)
{
	scoped_mem char *part = mem_printf("/layers/%s.", at->id);

	return strstr(dir, part) != NULL;
}

/* An apply finds what it takes over by its place, and what it does not find was removed. */
static int hold_changes(struct at_rest *at, const char *dir, struct err *err)
{
	return at->changes_fd >= 0 ? 0 : pending_lock(dir, &at->changes_fd, err);
}

int freeze_settle(const struct cli *cli, struct at_rest *at, struct err *err)
{
	scoped_mem char *changes = mem_printf("%s/changes/%s", cli->state_dir, at->id);
	scoped(change_set) struct change_set *set = NULL;
	const struct spec *spec = at->rest->spec;
	int r = 0;

	for (size_t i = 0; r == 0 && i < spec->n_lowers; i++) {
		const struct spec_lower *l = &spec->lowers[i];
		const struct change_layer *layer;

		if (!is_of(at, l->dir) || access(l->dir, F_OK) == 0)
			continue;
		if (!set) {
			r = hold_changes(at, changes, err);
			r = r < 0 ? r : change_set_open(changes, &set, err);
			r = r < 0 ? r : write_changes(set, spec, err);
		}
		layer = r < 0 ? NULL : find_layer(set, l->guest);
		if (r == 0)
			r = layer ? move_upper(layer->upper, l->dir) : -ENOENT;
		if (r < 0)
			r = err_set(err, r, "move what it changed at '%s' to '%s': %m", l->guest,
				l->dir);
	}
	return r;
}

int freeze_uppers(const struct cli *cli, struct at_rest *at, struct err *err)
{
	scoped_mem char *changes = mem_printf("%s/changes/%s", cli->state_dir, at->id);
	scoped(change_set) struct change_set *set = NULL;
	bool is_any = false;
	int r = hold_changes(at, changes, err);

	if (r == 0)
		r = change_set_open(changes, &set, err);
	if (r == 0)
		r = plan(cli, at, set, &is_any, err);
	if (r == 0 && is_any)
		r = rest_write(at->dir, at->rest, err);
	return r < 0 ? r : freeze_settle(cli, at, err);
}
