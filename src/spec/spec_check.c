/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a spec that need nothing made. Hosts change between here and the mount: whoever mounts follows
 * no link that is new in a path. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "spec/spec.h"
#include "spec/spec_parse.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/utf8.h"

#define MEMORY_MIN    (4LL << 20)   /* below this not even a shell starts */
#define BUFFER_MIN    (256LL << 10) /* the smallest ring */
#define BUFFER_MAX    (4LL << 30)
#define CPU_MILLI_MIN 10
#define DISK_MIN      (1LL << 20) /* the folders of its layers alone are a part of that */
#define PIDS_MIN      2           /* process 1 and a command */
#define MOUNTS_MAX    (16u << 20) /* of /proc/self/mountinfo */

/* Folders of the host that are Cloche's: nothing inside may see them. */
enum { OWN_STATE, OWN_RUN, OWN_USUAL_STATE, OWN_USUAL_RUN, OWN_N };
struct own {
	const char *dirs[OWN_N];
	struct str places[OWN_N]; /* see find_place() */
	struct str mounts;        /* of the host, as the kernel lists them */
};

/* Places inside that are ours to fill. */
static const char *const kept_places[] = {"/", "/proc", "/sys", "/dev"};

static int check_limits(const struct spec *spec, struct err *err)
{
	if (spec->memory_bytes && spec->memory_bytes < MEMORY_MIN)
		return err_set(err, -EINVAL, "a memory limit below 4M starts nothing: raise it");
	if (spec->cpu_milli && spec->cpu_milli < CPU_MILLI_MIN)
		return err_set(err, -EINVAL, "a limit below 0.01 CPUs is not possible: raise it");
	if (spec->pids_max && spec->pids_max < PIDS_MIN)
		return err_set(err, -EINVAL, "a limit below 2 processes starts nothing: raise it");
	if (spec->disk_bytes && spec->disk_bytes < DISK_MIN)
		return err_set(err, -EINVAL, "a disk limit below 1M holds nothing: raise it");
	if (spec->buffer_bytes < BUFFER_MIN || spec->buffer_bytes > BUFFER_MAX)
		return err_set(err, -EINVAL, "the trace buffer must lie between 256K and 4G");
	return 0;
}

static int check_names(const struct spec *spec, struct err *err)
{
	if (spec->name && strlen(spec->name) > SPEC_NAME_MAX)
		return err_set(err, -EINVAL, "a name has at most %d bytes", SPEC_NAME_MAX);
	for (size_t i = 0; i < spec->n_labels; i++)
		if (strlen(spec->labels[i].key) > SPEC_NAME_MAX ||
			strlen(spec->labels[i].value) > SPEC_NAME_MAX)
			return err_set(err, -EINVAL,
				"a label and its value have at most %d bytes each", SPEC_NAME_MAX);
	return 0;
}

/* Whether folder is path or one of those above it. Also by another name (a bind mount), where the kernel calls
 * both the same. */
static bool lies_in(const char *path, const char *folder)
{
	scoped_mem char *at = mem_dup(path);
	struct stat wanted, st;

	if (path_is_beneath(slice_of(path), slice_of(folder)))
		return true;
	if (stat(folder, &wanted) < 0)
		return false;
	for (;;) {
		char *slash = strrchr(at, '/');

		if (stat(at, &st) == 0 && st.st_dev == wanted.st_dev && st.st_ino == wanted.st_ino)
			return true;
		if (!slash || !at[1])
			return false;
		slash[slash == at] = '\0';
	}
}

/* Spaces and the like stand there as "\040". */
static void unescape(char *text)
{
	unsigned code;
	char *to = text;
	int n;

	for (const char *p = text; *p; to++)
		if (*p == '\\' && sscanf(p, "\\%3o%n", &code, &n) == 1) {
			*to = (char)code;
			p += n;
		} else {
			*to = *p++;
		}
	*to = '\0';
}

/* Where a path lies in its file system, by whatever mount it is reached: "8:1/srv/data". Nothing where that is
 * not known. */
static void find_place(const struct str *mounts, const char *path, struct str *ret)
{
	scoped_mem char *real = realpath(path, NULL);
	struct statx st;

	if (!real || !mounts->p || statx(AT_FDCWD, real, 0, STATX_MNT_ID, &st) < 0)
		return;
	for (const char *line = mounts->p; *line;
		line += strcspn(line, "\n"), line += *line == '\n') {
		char dev[32], root[PATH_MAX], point[PATH_MAX];
		unsigned long long id;

		if (sscanf(line, "%llu %*u %31s %4095s %4095s", &id, dev, root, point) != 4 ||
			id != st.stx_mnt_id)
			continue;
		unescape(root);
		unescape(point);
		if (!path_is_beneath(slice_of(real), slice_of(point)))
			return;
		str_printf(ret, "%s%s%s", dev, strcmp(root, "/") == 0 ? "" : root,
			real + (strcmp(point, "/") == 0 ? 0 : strlen(point)));
		if (ret->p[ret->len - 1] == '/')
			ret->p[--ret->len] = '\0';
		return;
	}
}

static bool is_either_beneath(const struct str *a, const struct str *b)
{
	return a->len > 0 && b->len > 0 &&
	       (path_is_beneath(str_slice(a), str_slice(b)) ||
		       path_is_beneath(str_slice(b), str_slice(a)));
}

/* Which of our own folders this one would show, or NULL. */
static const char *shown_by(const char *folder, const struct own *own)
{
	scoped_str struct str place = {0};

	find_place(&own->mounts, folder, &place);
	for (size_t i = 0; i < OWN_N; i++)
		if (lies_in(own->dirs[i], folder) || lies_in(folder, own->dirs[i]) ||
			is_either_beneath(&place, &own->places[i]))
			return own->dirs[i];
	return NULL;
}

static void open_own(struct own *own)
{
	(void)fdio_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_MAX,
		&own->mounts); /* without, names have to do */
	for (size_t i = 0; i < OWN_N; i++)
		find_place(&own->mounts, own->dirs[i], &own->places[i]);
}

static void close_own(struct own *own)
{
	str_done(&own->mounts);
	for (size_t i = 0; i < OWN_N; i++)
		str_done(&own->places[i]);
}

static bool has_folder(const char *root, const char *name)
{
	scoped_mem char *path = mem_printf("%s/%s", root, name);
	struct stat st;

	/* Its own links are absolute and mean nothing out here: a link counts as the folder. */
	return lstat(path, &st) == 0 && (S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode));
}

static int check_rootfs(const char *rootfs, const struct own *own, struct err *err)
{
	const char *shown;
	struct stat st;

	if (rootfs[0] != '/')
		return err_set(err, -EINVAL, "rootfs '%s' must be an absolute path", rootfs);
	if (stat(rootfs, &st) < 0)
		return err_set(err, -errno, "rootfs '%s': %m", rootfs);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "rootfs '%s' is not a folder", rootfs);
	shown = shown_by(rootfs, own);
	if (shown)
		return err_set(err, -EINVAL,
			"rootfs '%s' would show Cloche's own state in %s inside: choose a folder "
			"apart from it",
			rootfs, shown);
	if (!has_folder(rootfs, "bin") && !has_folder(rootfs, "usr/bin"))
		return err_set(err, -EINVAL,
			"rootfs '%s' is no root filesystem: it has neither bin nor usr/bin",
			rootfs);
	return 0;
}

static int check_guest(const struct spec *spec, size_t i, struct err *err)
{
	const struct spec_mount *m = &spec->mounts[i];

	if (m->guest[0] != '/')
		return err_set(
			err, -EINVAL, "mount at '%s': want an absolute path inside", m->guest);
	for (size_t k = 0; k < sizeof(kept_places) / sizeof(kept_places[0]); k++)
		if (strcmp(m->guest, kept_places[k]) == 0 ||
			(k > 0 && path_is_beneath(slice_of(m->guest), slice_of(kept_places[k]))))
			return err_set(err, -EINVAL,
				"mount at '%s': that place is the sandbox's own", m->guest);
	for (size_t k = 0; k < i; k++)
		if (strcmp(m->guest, spec->mounts[k].guest) == 0)
			return err_set(err, -EEXIST, "two mounts at '%s': name it once", m->guest);
	return 0;
}

/* Files that are the kernel's: they would show the host's processes and settings. */
static bool is_kernel_place(const char *host)
{
	for (size_t k = 1; k < sizeof(kept_places) / sizeof(kept_places[0]); k++)
		if (path_is_beneath(slice_of(host), slice_of(kept_places[k])))
			return !path_is_beneath(slice_of(host), slice_of("/dev/shm"));
	return false;
}

/* The same by another name: a file system that is the kernel's, wherever it is mounted. */
static bool is_kernel_filesystem(const char *host)
{
	static const unsigned long kinds[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC,
		CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC, BPF_FS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
		SECURITYFS_MAGIC, SELINUX_MAGIC, EFIVARFS_MAGIC, NSFS_MAGIC, BINFMTFS_MAGIC};
	struct statfs fs;

	if (statfs(host, &fs) < 0)
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((unsigned long)fs.f_type == kinds[i])
			return true;
	return false;
}

static int check_mount(const struct spec_mount *m, const struct own *own, struct err *err)
{
	const char *shown;
	struct stat st;

	if (m->host[0] != '/')
		return err_set(err, -EINVAL, "mount of '%s': want an absolute path", m->host);
	if (stat(m->host, &st) < 0)
		return err_set(err, -errno, "mount of '%s': %m", m->host);
	if (strcmp(m->host, "/") == 0)
		return err_set(err, -EINVAL,
			"mount of '/': that is the whole host, name the folders that are to be "
			"shown");
	if (is_kernel_place(m->host) || is_kernel_filesystem(m->host))
		return err_set(err, -EINVAL,
			"mount of '%s': the host's /proc, /sys and /dev stay outside", m->host);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(
			err, -EINVAL, "mount of '%s': want a folder or a regular file", m->host);
	if (m->mode == SPEC_MOUNT_COW && !S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR,
			"mount of '%s': only a folder can be cow, use ro or rw for a file",
			m->host);
	shown = shown_by(m->host, own);
	if (shown)
		return err_set(err, -EINVAL,
			"mount of '%s' would show Cloche's own state in %s inside: mount a folder "
			"apart from it",
			m->host, shown);
	return 0;
}

static int check_mounts(const struct spec *spec, const struct own *own, struct err *err)
{
	for (size_t i = 0; i < spec->n_mounts; i++) {
		int r = check_mount(&spec->mounts[i], own, err);

		if (r == 0)
			r = check_guest(spec, i, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_texts(const struct spec *spec, struct err *err)
{
	const struct {
		const char *what, *text;
	} texts[] = {{"name", spec->name}, {"task", spec->task}, {"account", spec->account},
		{"agent", spec->agent}, {"work item", spec->work_item}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].text && !utf8_is_valid(texts[i].text, strlen(texts[i].text)))
			return err_set(err, -EINVAL, "the %s is not UTF-8", texts[i].what);
	for (size_t i = 0; i < spec->env.n; i++)
		if (spec->env.items[i][0] == '=' || !strchr(spec->env.items[i], '='))
			return err_set(
				err, -EINVAL, "variable %zu of 'env': want NAME=VALUE", i + 1);
	return 0;
}

int spec_check(const struct spec *spec, const char *state_dir, const char *run_dir, struct err *err)
{
	scoped_mem char *state = realpath(state_dir, NULL), *run = realpath(run_dir, NULL);
	/* Not made yet: nothing to hide behind a link. */
	struct own own = {
		.dirs = {[OWN_STATE] = state ? state : state_dir,
			[OWN_RUN] = run ? run : run_dir,
			/* of the host's other sandboxes, where this one has folders apart */
			[OWN_USUAL_STATE] = "/var/lib/cloche",
			[OWN_USUAL_RUN] = "/run/cloche"}};
	int r;

	r = check_texts(spec, err);
	if (r == 0)
		r = check_names(spec, err);
	if (r == 0)
		r = check_limits(spec, err);
	if (r == 0)
		r = spec_network_check(&spec->network, err);
	if (r < 0)
		return r;
	if (spec->rootfs && spec->image)
		return err_set(err, -EINVAL,
			"a root is made of an image or of a folder: leave out --image or --rootfs");
	if (spec->workdir && spec->workdir[0] != '/')
		return err_set(
			err, -EINVAL, "workdir '%s' must be an absolute path", spec->workdir);
	open_own(&own);
	if (spec->rootfs)
		r = check_rootfs(spec->rootfs, &own, err);
	if (r == 0)
		r = check_mounts(spec, &own, err);
	close_own(&own);
	return r;
}
