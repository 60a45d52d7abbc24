/* SPDX-License-Identifier: Apache-2.0 */
/* <state>/skel/ holds sk_.../ (skeletons), sk_....lock (held shared by each user of one), `lock` (held while
 * building) and `current`: the boot id, the name of the skeleton to use, and the change time of every folder
 * and file it was made from. It is right as long as all of these are as they were. */
#include "sandbox/skel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/treecopy.h"
#include "util/fdio.h"
#include "util/id.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define CURRENT_MAX (4u << 20)
#define PATH_LEN    4096
#define MAX_TRIES   8
#define MAKE        "2 " /* of a skeleton: another number where other files are put there */

/* Secrets that some programs leave readable, what names this machine, and what only the host's init uses. */
static const char *const etc_skip[] = {"apt/auth.conf", "apt/auth.conf.d", "hostname", "hosts",
	"machine-id", "mtab", "resolv.conf", "shadow", "shadow-", "gshadow", "gshadow-",
	"ssl/private", "sudoers", "sudoers.d", "systemd", "init.d", "cron.d", "cron.daily",
	"cron.hourly", "cron.monthly", "cron.weekly", "crontab", "NetworkManager", "wireguard",
	"openvpn", "ppp", "docker", "kubernetes", "rancher", "letsencrypt", "krb5.keytab",
	"exports", "fstab", "crypttab", "cloche", NULL};

/* What package managers must find as it is on the host. */
static const char *const state_copies[] = {"/var/lib/dpkg", "/var/lib/apt", "/var/lib/ucf",
	"/var/lib/pam", "/var/lib/dictionaries-common", "/var/lib/emacsen-common",
	"/var/lib/sgml-base", "/var/lib/xml-core", "/var/lib/python", "/var/lib/rpm"};
static const char *const state_skip[] = {
	"lock", "lock-frontend", "daily_lock", "lists/lock", "lists/partial", NULL};

struct folder {
	const char *path;
	mode_t mode;
};
static const struct folder folders[] = {{"usr", 0755}, {"opt", 0755}, {"root", 0700},
	{"home", 0755}, {"tmp", 01777}, {"workspace", 0755}, {"proc", 0555}, {"sys", 0555},
	{"dev", 0755}, {"run", 0755}, {"run/lock", 01777}, {"mnt", 0755}, {"media", 0755},
	{"srv", 0755}, {"etc", 0755}, {"var", 0755}, {"var/lib", 0755}, {"var/cache", 0755},
	{"var/cache/apt", 0755}, {"var/cache/apt/archives", 0755},
	{"var/cache/apt/archives/partial", 0700}, {"var/cache/debconf", 0755}, {"var/log", 0755},
	{"var/log/apt", 0755}, {"var/tmp", 01777}, {"var/spool", 0755}, {"var/mail", 02775},
	{"var/opt", 0755}, {"var/local", 0755}, {"var/backups", 0755}};
static const char *const usr_links[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

/* Beside every folder of /etc: what changes in place. */
static const char *const watched[] = {"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/environment",
	"/etc/profile", "/etc/nsswitch.conf", "/etc/ld.so.cache", "/etc/apt/sources.list",
	"/etc/ssl/certs/ca-certificates.crt", "/var/lib/dpkg", "/var/lib/dpkg/status",
	"/var/lib/dpkg/info", "/var/lib/apt/lists", "/var/lib/apt/extended_states"};

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

static int put_file(int dirfd, const char *path, struct slice text, mode_t mode)
{
	scoped_fd int fd =
		openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || fchmod(fd, mode) < 0)
		return -errno;
	return fdio_write_all(fd, text.p, text.len);
}

/* passwd(5) or group(5) to its shadow: the names, no passwords. Its group is as on the host: who is left with
 * group root may not read it. */
static int put_shadow(int dirfd, const char *from, const char *host_path, const char *rest)
{
	scoped_str struct str names = {0}, out = {0};
	const char *to = host_path + 1, *line, *end;
	struct stat host;
	int r;

	if (fdio_read_file(AT_FDCWD, from, CURRENT_MAX, &names) < 0 || !names.p)
		return 0;
	for (line = names.p; *line; line = *end ? end + 1 : end) {
		const char *colon = strchr(line, ':');

		end = line + strcspn(line, "\n");
		if (!colon || colon > end)
			continue;
		str_add(&out, line, (size_t)(colon - line));
		str_puts(&out, rest);
	}
	r = put_file(dirfd, to, str_slice(&out), 0640);
	if (r < 0)
		return r;
	if (lstat(host_path, &host) == 0 &&
		fchownat(dirfd, to, 0, host.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static int put_folders(int root)
{
	for (size_t i = 0; i < LEN(folders); i++) {
		if (mkdirat(root, folders[i].path, folders[i].mode) < 0 && errno != EEXIST)
			return -errno;
		if (fchmodat(root, folders[i].path, folders[i].mode, 0) < 0)
			return -errno;
	}
	return 0;
}

static int put_links(int root)
{
	char path[PATH_LEN], target[PATH_LEN];

	for (size_t i = 0; i < LEN(usr_links); i++) {
		struct stat st;
		ssize_t n;

		(void)snprintf(path, sizeof(path), "/%s", usr_links[i]);
		n = readlink(path, target, sizeof(target) - 1);
		if (n >= 0) {
			target[n] = '\0';
			if (symlinkat(target, root, usr_links[i]) < 0)
				return -errno;
		} else if (stat(path, &st) == 0 && mkdirat(root, usr_links[i], 0755) < 0) {
			return -errno;
		}
	}
	if (symlinkat("/run", root, "var/run") < 0 || symlinkat("/run/lock", root, "var/lock") < 0)
		return -errno;
	return symlinkat("../proc/self/mounts", root, "etc/mtab") < 0 ? -errno : 0;
}

static int put_etc_files(int root)
{
	int r = put_file(root, "etc/hostname", slice_of("sandbox\n"), 0644);

	if (r == 0)
		r = put_file(root, "etc/hosts",
			slice_of("127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost "
				 "ip6-loopback\n"),
			0644);
	if (r == 0)
		r = put_file(root, "etc/resolv.conf", slice_of(SKEL_RESOLV_CONF), 0644);
	if (r == 0)
		r = put_shadow(root, "/etc/passwd", "/etc/shadow", ":*:19000:0:99999:7:::\n");
	if (r == 0)
		r = put_shadow(root, "/etc/group", "/etc/gshadow", ":*::\n");
	return r;
}

static int copy_state(int root, const char *root_path, struct err *err)
{
	struct treecopy copy = {.skip = state_skip};
	struct stat st;
	int r;

	for (size_t i = 0; i < LEN(state_copies); i++) {
		scoped_mem char *to = mem_printf("%s%s", root_path, state_copies[i]);

		if (stat(state_copies[i], &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		if (mkdir(to, 0755) < 0)
			return err_set(err, -errno, "make '%s': %m", to);
		r = treecopy_run(&copy, state_copies[i], to, err);
		if (r < 0)
			return r;
	}
	/* Left out above since nobody may look into it, but apt wants it. */
	if (mkdirat(root, "var/lib/apt", 0755) < 0 && errno != EEXIST)
		return err_set(err, -errno, "make var/lib/apt: %m");
	(void)mkdirat(root, "var/lib/apt/lists", 0755);
	(void)mkdirat(root, "var/lib/apt/lists/partial", 0700);
	return 0;
}

static int fill(const char *path, struct str *ret_folders, struct err *err)
{
	struct treecopy etc = {.skip = etc_skip, .ret_folders = ret_folders};
	scoped_fd int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped_mem char *to = mem_printf("%s/etc", path);
	int r;

	if (root < 0)
		return err_set(err, -errno, "open '%s': %m", path);
	r = put_folders(root);
	if (r == 0)
		r = put_links(root);
	if (r < 0)
		return err_set(err, r, "make the skeleton '%s': %m", path);
	r = treecopy_run(&etc, "/etc", to, err);
	if (r == 0)
		r = copy_state(root, path, err);
	if (r < 0)
		return r;
	r = put_etc_files(root);
	return r < 0 ? err_set(err, r, "make the skeleton '%s': %m", path) : 0;
}

static void add_watch(struct str *out, const char *path)
{
	struct stat st = {0};

	(void)lstat(path, &st); /* not there: zeros, and another answer once it is */
	str_printf(out, "%lld.%09ld %llu ", (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec,
		(unsigned long long)st.st_ino);
	str_add(out, path, strlen(path) + 1);
}

static void add_boot_id(struct str *out)
{
	/* Skeletons of other makes are left alone. */
	str_puts(out, MAKE);
	/* The skeleton is not synced: after a power cut it may be half there. */
	(void)fdio_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", PATH_LEN, out);
	str_putc(out, '\0');
}

/* `current` as it has to be for a skeleton of that name; folders as treecopy gave them. */
static void describe(struct str *out, const char *name, const struct str *folders_read)
{
	add_boot_id(out);
	str_add(out, name, strlen(name) + 1);
	for (size_t i = 0; i < LEN(watched); i++)
		add_watch(out, watched[i]);
	for (size_t at = 0; at < folders_read->len; at += strlen(folders_read->p + at) + 1) {
		scoped_mem char *path = mem_printf("/etc/%s", folders_read->p + at);

		add_watch(out, path);
	}
}

/* The name in `current` where all it says still holds; NULL otherwise. Points into text. */
static const char *check(const struct str *text)
{
	scoped_str struct str now = {0};
	const char *name, *line;
	size_t at;

	add_boot_id(&now);
	if (text->len < now.len || memcmp(text->p, now.p, now.len) != 0)
		return NULL;
	name = text->p + now.len;
	if (!id_is_valid("sk", name))
		return NULL;
	for (at = now.len + strlen(name) + 1; at < text->len; at += strlen(line) + 1) {
		const char *path;

		line = text->p + at;
		path = strchr(line, '/');
		if (!path)
			return NULL;
		str_reset(&now);
		add_watch(&now, path);
		if (strcmp(now.p, line) != 0)
			return NULL;
	}
	return name;
}

static int lock_of(int dirfd, const char *name, int how, int *ret_fd)
{
	char path[ID_SIZE + 8];
	scoped_fd int fd = -1;

	(void)snprintf(path, sizeof(path), "%.19s.lock", name);
	fd = openat(dirfd, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, how) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* The skeleton `current` names, locked; -ENOENT where it has to be made. */
static int find(int dirfd, char ret_name[ID_SIZE], int *ret_lock_fd)
{
	scoped_str struct str text = {0};
	scoped_fd int lock = -1;
	const char *name;
	int r;

	if (fdio_read_file(dirfd, "current", CURRENT_MAX, &text) < 0 || !text.p)
		return -ENOENT;
	name = check(&text);
	if (!name)
		return -ENOENT;
	r = lock_of(dirfd, name, LOCK_SH, &lock);
	if (r < 0)
		return r;
	/* It may have been removed between reading the name and the lock. */
	if (faccessat(dirfd, name, F_OK, 0) < 0)
		return -ENOENT;
	(void)snprintf(ret_name, ID_SIZE, "%s", name);
	*ret_lock_fd = take_fd(&lock);
	return 0;
}

/* Removes skeletons that nobody uses, and what a builder that died left. Called with `lock` held. */
static void remove_old(int dirfd, const char *keep)
{
	struct dirent *entry;
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	while (dir && (entry = readdir(dir))) {
		scoped_fd int lock = -1;
		char lock_name[ID_SIZE + 8];

		if (strncmp(entry->d_name, "new.", 4) == 0) {
			(void)path_remove_all(dirfd, entry->d_name);
			continue;
		}
		if (!id_is_valid("sk", entry->d_name) || strcmp(entry->d_name, keep) == 0)
			continue;
		if (lock_of(dirfd, entry->d_name, LOCK_EX | LOCK_NB, &lock) < 0)
			continue;
		(void)path_remove_all(dirfd, entry->d_name);
		(void)snprintf(lock_name, sizeof(lock_name), "%.19s.lock", entry->d_name);
		(void)unlinkat(dirfd, lock_name, 0);
	}
	if (dir)
		(void)closedir(dir);
}

static int build(int dirfd, const char *dir, struct err *err)
{
	scoped_str struct str folders_read = {0}, current = {0};
	scoped_mem char *path = NULL;
	char name[ID_SIZE], fresh[ID_SIZE + 4];
	int r;

	id_new("sk", name);
	remove_old(dirfd, "");
	(void)snprintf(fresh, sizeof(fresh), "new.%s", name);
	path = mem_printf("%s/%s", dir, fresh);
	if (mkdirat(dirfd, fresh, 0755) < 0)
		return err_set(err, -errno, "make '%s': %m", path);
	r = fill(path, &folders_read, err);
	if (r < 0) {
		(void)path_remove_all(dirfd, fresh);
		return r;
	}
	if (renameat(dirfd, fresh, dirfd, name) < 0)
		return err_set(err, -errno, "rename '%s': %m", path);
	describe(&current, name, &folders_read);
	r = fdio_replace(dirfd, "current", current.p, current.len, 0600);
	return r < 0 ? err_set(err, r, "write '%s/current': %m", dir) : 0;
}

static int find_or_build(
	int dirfd, const char *dir, char ret_name[ID_SIZE], int *ret_lock_fd, struct err *err)
{
	scoped_fd int lock = -1;
	int r;

	for (int i = 0; i < MAX_TRIES; i++) {
		r = find(dirfd, ret_name, ret_lock_fd);
		if (r != -ENOENT)
			return r < 0 ? err_set(err, r, "open the host view's skeleton in '%s': %m",
					       dir)
			             : 0;
		if (lock < 0) {
			lock = openat(
				dirfd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
			if (lock < 0 || flock(lock, LOCK_EX) < 0)
				return err_set(err, -errno, "lock '%s': %m", dir);
			continue; /* somebody may have made it while we waited */
		}
		r = build(dirfd, dir, err);
		if (r < 0)
			return r;
	}
	return err_set(err, -EAGAIN, "/etc changes faster than the host view can be made from it");
}

int skel_open(const char *state_dir, char **ret_path, int *ret_lock_fd, struct err *err)
{
	scoped_mem char *dir = mem_printf("%s/skel", state_dir);
	scoped_fd int dirfd = -1;
	char name[ID_SIZE];
	int r = path_make_all(dir, 0700);

	if (r < 0)
		return err_set(err, r, "make '%s': %m", dir);
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return err_set(err, -errno, "open '%s': %m", dir);
	r = find_or_build(dirfd, dir, name, ret_lock_fd, err);
	if (r < 0)
		return r;
	*ret_path = mem_printf("%s/%s", dir, name);
	return 0;
}
