/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of a source is root inside, through a map of ids on the mount. Written through (rw), ids inside
 * map to nobody else's ids outside; what the mount cannot refuse - set-id bits, whiteout devices - the seccomp
 * filter does, and file capabilities fail for want of the capability to set them. cow and ro map all ids, so
 * that everything can be read and changed: nothing of that reaches the host but by `cloche apply`. */
#include "sandbox/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/kmount.h"
#include "sandbox/layer.h"
#include "sandbox/mount_copy.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define NAME_LEN 16

/* One that goes on is about the folder that was first mounted, whatever stands in its place now. */
static void take_id(struct mounts_entry *entry)
{
	if (entry->spec->folder_id)
		(void)snprintf(entry->folder_id, FOLDER_ID_SIZE, "%s", entry->spec->folder_id);
	else
		folder_id_at(entry->spec->host, entry->folder_id);
}

static int plan_entry(
	struct mounts_entry *entry, const struct spec_mount *spec, uint32_t base, struct err *err)
{
	struct stat st;

	*entry = (struct mounts_entry){.spec = spec, .cow = -1, .fd = -1};
	/* What we put in for ourselves is never written to. */
	entry->how = spec->internal ? SPEC_MOUNT_RO : spec->mode;
	if (stat(spec->host, &st) < 0)
		return err_set(err, -errno, "mount source '%s': %m", spec->host);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "mount source '%s' is neither a folder nor a file",
			spec->host);
	if (S_ISREG(st.st_mode) && entry->how == SPEC_MOUNT_COW)
		return err_set(err, -ENOTDIR,
			"mount source '%s' is a file: cow takes folders, files go ro or rw",
			spec->host);
	entry->is_folder = S_ISDIR(st.st_mode);
	entry->mode = st.st_mode & 0777;
	entry->uid = st.st_uid;
	entry->gid = st.st_gid;
	if (entry->how == SPEC_MOUNT_COW)
		take_id(entry);
	if (entry->how == SPEC_MOUNT_RW) {
		idmap_owner_only(&entry->uids, st.st_uid, base);
		idmap_owner_only(&entry->gids, st.st_gid, base);
	} else {
		idmap_all(&entry->uids, st.st_uid, base);
		idmap_all(&entry->gids, st.st_gid, base);
	}
	return 0;
}

static int by_guest(const void *a, const void *b)
{
	const struct mounts_entry *x = a, *y = b;

	return strcmp(x->spec->guest, y->spec->guest); /* "/a" sorts before "/a/b" */
}

int mounts_plan(struct mounts *mounts, const struct spec *spec, uint32_t base, struct err *err)
{
	int n_cow = 0, r;

	mounts->n = 0;
	mounts->has_rw = false;
	if (spec->n_mounts > BOOT_MAX_MOUNTS)
		return err_set(err, -E2BIG, "%zu mounts, at most %d can be made", spec->n_mounts,
			BOOT_MAX_MOUNTS);
	for (size_t i = 0; i < spec->n_mounts; i++) {
		struct mounts_entry *entry = &mounts->entries[mounts->n];

		r = plan_entry(entry, &spec->mounts[i], base, err);
		if (r < 0)
			return r;
		entry->number = i;
		if (entry->how == SPEC_MOUNT_COW)
			entry->cow = n_cow++;
		mounts->has_rw = mounts->has_rw || entry->how == SPEC_MOUNT_RW;
		if (entry->is_folder && !entry->spec->internal)
			hide_find(entry->spec->host, &spec->hide, &entry->hide);
		mounts->n++;
	}
	qsort(mounts->entries, mounts->n, sizeof(mounts->entries[0]), by_guest);
	return 0;
}

void mounts_done(struct mounts *mounts)
{
	for (size_t i = 0; i < mounts->n; i++) {
		hide_list_done(&mounts->entries[i].hide);
		scoped_close(&mounts->entries[i].fd);
		mounts->entries[i].fd = -1;
		free(take(&mounts->entries[i].copy));
	}
	mounts->n = 0;
	if (mounts->copies)
		(void)path_remove_all(AT_FDCWD, mounts->copies); /* what stays, gc removes */
	free(take(&mounts->copies));
	free(take(&mounts->notice));
}

void mounts_close_plain(struct mounts *mounts)
{
	for (size_t i = 0; i < mounts->n; i++) {
		if (mounts->entries[i].cow >= 0)
			continue;
		scoped_close(&mounts->entries[i].fd);
		mounts->entries[i].fd = -1;
	}
}

static bool is_same_map(const struct idmap *a, const struct idmap *b)
{
	return a->n == b->n && memcmp(a->lines, b->lines, a->n * sizeof(a->lines[0])) == 0;
}

/* User namespaces made for maps, so that mounts with the same map share one. */
struct map_cache {
	struct {
		const struct mounts_entry *entry;
		int fd;
	} items[BOOT_MAX_MOUNTS];
	size_t n;
	const struct mounts_place *place;
};

/* Borrowed from the cache. */
static int map_userns(struct map_cache *cache, const struct mounts_entry *entry, struct err *err)
{
	int fd;

	if (idmap_is_plain(&entry->uids, cache->place->base) &&
		idmap_is_plain(&entry->gids, cache->place->base))
		return cache->place->plain_userns_fd;
	for (size_t i = 0; i < cache->n; i++) {
		const struct mounts_entry *other = cache->items[i].entry;

		if (is_same_map(&entry->uids, &other->uids) &&
			is_same_map(&entry->gids, &other->gids))
			return cache->items[i].fd;
	}
	fd = idmap_open_userns(&entry->uids, &entry->gids, err);
	if (fd < 0)
		return fd;
	cache->items[cache->n].entry = entry;
	cache->items[cache->n++].fd = fd;
	return fd;
}

static const char *source_of(const struct mounts_entry *entry)
{
	return entry->copy ? entry->copy : entry->spec->host;
}

static int open_cow(const struct mounts_entry *entry, int changes_fd, int userns_fd,
	const struct mounts_place *place, struct err *err)
{
	struct layer_lower buf[LAYER_MAX_LOWERS];
	char prefix[NAME_LEN];
	struct layer layer = {.dir_fd = changes_fd,
		.over_fd = -1,
		.prefix = prefix,
		.lower = source_of(entry),
		.userns_fd = userns_fd,
		.owner = place->base,
		.mode = entry->mode,
		.quota = place->quota};
	int r = lowers_put(place->lowers, entry->spec->guest, &layer, buf, err);

	(void)snprintf(prefix, sizeof(prefix), "%d/", entry->cow);
	return r < 0 ? r : layer_open(&layer, err);
}

static int open_by_mode(struct mounts_entry *entry, int changes_fd, int userns_fd,
	const struct mounts_place *place, struct err *err)
{
	uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

	if (entry->how == SPEC_MOUNT_COW)
		entry->fd = open_cow(entry, changes_fd, userns_fd, place, err);
	else
		entry->fd = kmount_clone(source_of(entry),
			attrs | (entry->how == SPEC_MOUNT_RO ? MOUNT_ATTR_RDONLY : 0), userns_fd,
			err);
	return entry->fd < 0 ? entry->fd : 0;
}

static int make_copy(struct mounts *mounts, struct mounts_entry *entry,
	const struct mounts_place *place, struct err *err)
{
	struct mount_copy copy;
	int r;

	if (entry->how == SPEC_MOUNT_RW)
		return err_set(err, -EINVAL,
			"mount of '%s' rw: it lies on a filesystem whose ids cannot be mapped "
			"(overlay, NFS, 9p; tmpfs before Linux 6.3): mount it ro or cow, which "
			"show "
			"a copy, or move it to a local disk filesystem",
			entry->spec->host);
	if (!mounts->copies)
		mounts->copies = mem_dup(place->copies_dir);
	r = mount_copy_make(
		entry->spec->host, entry->is_folder, place->copies_dir, entry->number, &copy, err);
	if (r < 0)
		return r;
	entry->copy = copy.path;
	if (!mounts->notice)
		mounts->notice = mem_printf("'%s' lies on a filesystem whose ids cannot be mapped: "
					    "a copy of it is mounted "
					    "(%zu entries, %llu MiB), in which nothing is seen of "
					    "what changes on the host "
					    "from now on",
			entry->spec->host, copy.n_entries,
			(unsigned long long)(copy.n_bytes >> 20));
	return 0;
}

static int open_entry(struct mounts *mounts, struct mounts_entry *entry, int changes_fd,
	struct map_cache *cache, struct err *err)
{
	int userns_fd = map_userns(cache, entry, err), r;

	if (userns_fd < 0)
		return userns_fd;
	r = open_by_mode(entry, changes_fd, userns_fd, cache->place, err);
	if (r != -EINVAL || !mount_copy_is_needed(entry->spec->host, userns_fd))
		return r;
	r = make_copy(mounts, entry, cache->place, err);
	return r < 0 ? r : open_by_mode(entry, changes_fd, userns_fd, cache->place, err);
}

int mounts_open(struct mounts *mounts, const struct mounts_place *place, struct err *err)
{
	struct map_cache cache = {.place = place};
	scoped_fd int changes_fd = -1;
	int r = 0;

	if (mounts->n == 0)
		return 0;
	changes_fd = open(place->changes_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; r == 0 && i < mounts->n; i++) {
		if (mounts->entries[i].cow >= 0 && changes_fd < 0)
			r = err_set(err, -ENOENT, "open '%s': %m", place->changes_dir);
		else
			r = open_entry(mounts, &mounts->entries[i], changes_fd, &cache, err);
	}
	for (size_t i = 0; i < cache.n; i++)
		(void)close(cache.items[i].fd);
	return r;
}

static void write_map(struct jsonw *j, const char *key, const struct idmap *map)
{
	jsonw_key(j, key);
	jsonw_array(j);
	for (size_t i = 0; i < map->n; i++) {
		jsonw_array(j);
		jsonw_int(j, map->lines[i].disk);
		jsonw_int(j, map->lines[i].host);
		jsonw_int(j, map->lines[i].n);
		jsonw_array_end(j);
	}
	jsonw_array_end(j);
}

static void write_place(struct jsonw *j, const struct mounts_entry *entry)
{
	jsonw_ktext(j, "host", entry->spec->host);
	jsonw_ktext(j, "guest", entry->spec->guest);
	jsonw_kint(j, "owner_uid", entry->uid);
	jsonw_kint(j, "owner_gid", entry->gid);
	write_map(j, "uid_map", &entry->uids);
	write_map(j, "gid_map", &entry->gids);
}

static void write_entry(
	struct jsonw *j, const struct mounts_entry *entry, const struct lowers *lowers)
{
	char upper[NAME_LEN * 2];

	(void)snprintf(upper, sizeof(upper), "%d/upper", entry->cow);
	jsonw_object(j);
	jsonw_kint(j, "n", entry->cow);
	write_place(j, entry);
	jsonw_ktext(j, "folder_id", entry->folder_id);
	if (entry->copy)
		jsonw_kbool(j, "copied", true);
	jsonw_ktext(j, "upper", upper);
	lowers_write(lowers, entry->spec->guest, j);
	if (entry->spec->profile)
		jsonw_kbool(j, "counted", true);
	jsonw_object_end(j);
}

void mounts_write_changes(const struct mounts *mounts, const struct lowers *lowers, struct jsonw *j)
{
	for (int n = 0; n < (int)mounts->n; n++)
		for (size_t i = 0; i < mounts->n; i++)
			if (mounts->entries[i].cow == n)
				write_entry(j, &mounts->entries[i], lowers);
}

void mounts_write_rw(const struct mounts *mounts, struct jsonw *j)
{
	for (size_t i = 0; i < mounts->n; i++) {
		const struct mounts_entry *entry = &mounts->entries[i];
		char before[NAME_LEN * 2];

		if (entry->how != SPEC_MOUNT_RW)
			continue;
		(void)snprintf(before, sizeof(before), MOUNTS_BEFORE_NAME, entry->number);
		jsonw_object(j);
		write_place(j, entry);
		jsonw_ktext(j, "before", before);
		jsonw_object_end(j);
	}
}

void mounts_keep_ids(const struct mounts *mounts, struct spec *spec)
{
	for (size_t i = 0; i < mounts->n; i++) {
		const struct mounts_entry *entry = &mounts->entries[i];
		struct spec_mount *mount = &spec->mounts[entry->number];

		if (entry->how != SPEC_MOUNT_COW)
			continue;
		free(mount->folder_id);
		mount->folder_id = mem_dup(entry->folder_id);
	}
}
