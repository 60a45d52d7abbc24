/* SPDX-License-Identifier: Apache-2.0 */
/* A program found in PATH is rarely alone: ~/.local/bin/tool links to ~/.local/share/tool/versions/2, node's
 * npm to ../lib. For each link that leads out of its folder, the part of the target's path just below what
 * both have in common is shown too - one step further where that part is a collection (~/.local/share holds
 * key rings). Only programs count, and some folders never do: see may_bring(). Some tool managers keep scripts in PATH that start what lies in a home of their own: a table. */
#include "cli/path_folders.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"

#define FOLDERS_MAX   32   /* PATH folders that are shown */
#define MOUNTS_MAX    96   /* mounts made for them, links included */
#define ENTRIES_MAX   2048 /* looked at in one folder */
#define ANCESTORS_MAX 16
#define ENVIRON_MAX   (1 << 20)
#define SYSTEM_PATH   "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What the host view holds already. */
static const char *const system_folders[] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt"};

/* What no link in a PATH folder brings in. */
static const char *const closed_folders[] = {"/proc", "/sys", "/dev", "/etc", "/boot", "/root"};

/* Folders that hold many programs' things. */
static const char *const collections[] = {"share", "opt", ".local", ".config", ".cache"};

/* PATH folder's end, what it needs beside itself (from the folder), a variable that says where that is. */
static const struct {
	const char *end, *needs, *variable;
} managers[] = {
	{"/.pyenv/shims", "..", "PYENV_ROOT"},
	{"/.pyenv/bin", "..", "PYENV_ROOT"},
	{"/.pyenv/plugins/pyenv-virtualenv/shims", "../../..", "PYENV_ROOT"},
	{"/.rbenv/shims", "..", "RBENV_ROOT"},
	{"/.rbenv/bin", "..", "RBENV_ROOT"},
	{"/.nodenv/shims", "..", "NODENV_ROOT"},
	{"/.asdf/shims", "..", "ASDF_DATA_DIR"},
	{"/.volta/bin", "..", "VOLTA_HOME"},
	{"/.cargo/bin", "../../.rustup", "RUSTUP_HOME"},
};

struct adding {
	struct spec *spec;
	struct spec_exec *exec;
	const char *home, *state_dir;
	size_t n_mounts;
	struct str path; /* the PATH inside, so far */
};

static bool is_system(const char *real)
{
	for (size_t i = 0; i < sizeof(system_folders) / sizeof(system_folders[0]); i++)
		if (path_is_beneath(slice_of(real), slice_of(system_folders[i])))
			return true;
	return false;
}

static bool is_beneath(const char *path, const char *folder)
{
	return path_is_beneath(slice_of(path), slice_of(folder));
}

/* Never the home itself or what is above it, nor anything that shows the state. */
static bool is_too_wide(const struct adding *a, const char *real)
{
	return strcmp(real, "/") == 0 || (*a->home && is_beneath(a->home, real)) ||
	       (*a->state_dir &&
		       (is_beneath(a->state_dir, real) || is_beneath(real, a->state_dir)));
}

static bool is_shown(const struct adding *a, const char *guest)
{
	for (size_t i = 0; i < a->spec->n_mounts; i++)
		if (is_beneath(guest, a->spec->mounts[i].guest))
			return true;
	return false;
}

/* Whether it can be reached by that name inside: shown already, or mounted now. */
static bool show(struct adding *a, const char *host, const char *guest)
{
	struct stat st;

	if (is_shown(a, guest))
		return true;
	if (is_too_wide(a, host) || is_too_wide(a, guest) || a->n_mounts == MOUNTS_MAX)
		return false;
	if (stat(host, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	spec_add_mount(a->spec, host, guest, SPEC_MOUNT_RO, true);
	a->n_mounts++;
	return true;
}

static bool is_collection(const char *path, size_t start, size_t end)
{
	for (size_t i = 0; i < sizeof(collections) / sizeof(collections[0]); i++)
		if (strlen(collections[i]) == end - start &&
			strncmp(path + start, collections[i], end - start) == 0)
			return true;
	return false;
}

/* The folder of target to show for a link in folder: see the head of this file. */
static char *part_to_show(const struct adding *a, const char *folder, const char *target)
{
	size_t common = 0, end;

	for (size_t i = 0; folder[i] == target[i] && folder[i]; i++)
		if (folder[i] == '/')
			common = i;
	/* Only the home (or less) in common: another tree, of which just the target's own folder is shown. */
	if (!*a->home || strlen(a->home) >= common || !is_beneath(target, a->home))
		return mem_copy(target, (size_t)(strrchr(target, '/') - target));
	end = common;
	do {
		size_t start = end + 1;

		end = start + strcspn(target + start, "/");
		if (!is_collection(target, start, end))
			break;
	} while (target[end]);
	if (!target[end]) /* the file itself: its folder */
		end = (size_t)(strrchr(target, '/') - target);
	return mem_copy(target, end);
}

static bool is_closed(const struct adding *a, const char *part)
{
	for (size_t i = 0; i < sizeof(closed_folders) / sizeof(closed_folders[0]); i++)
		if (is_beneath(part, closed_folders[i]) && !is_beneath(a->home, closed_folders[i]))
			return true;
	return false;
}

/* Whether one of its folders has a name that --hide denies. */
static bool is_hidden(const struct spec *spec, const char *part)
{
	scoped_mem char *copy = mem_dup(part);
	char *rest = copy, *name;

	while ((name = strsep(&rest, "/")))
		for (size_t i = 0; i < spec->hide.n; i++)
			if (fnmatch(spec->hide.items[i], name, 0) == 0)
				return true;
	return false;
}

/* What runs inside may have made the link, where it writes to that folder or its work was taken over: so it brings
 * in a program's folder only, and nothing that is the system's own, a whole top folder, or denied. */
static bool may_bring(const struct adding *a, const char *target, const char *part)
{
	struct stat st;

	if (stat(target, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return false;
	return *part && strchr(part + 1, '/') && !is_closed(a, part) && !is_hidden(a->spec, part);
}

static void show_target(struct adding *a, const char *folder, int fd, const char *name)
{
	scoped_mem char *link = mem_printf("/proc/self/fd/%d/%s", fd, name),
			*target = realpath(link, NULL);
	scoped_mem char *part = NULL;

	if (!target || is_system(target) || is_beneath(target, folder) || is_shown(a, target))
		return;
	part = part_to_show(a, folder, target);
	if (may_bring(a, target, part))
		show(a, part, part);
}

static void show_links(struct adding *a, const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *e;

	if (!dir)
		return;
	for (int n = 0; n < ENTRIES_MAX && (e = readdir(dir)); n++)
		if (e->d_type == DT_LNK)
			show_target(a, folder, dirfd(dir), e->d_name);
	closedir(dir);
}

static bool has_variable(const struct spec_exec *exec, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < exec->env.n; i++)
		if (strncmp(exec->env.items[i], name, len) == 0 && exec->env.items[i][len] == '=')
			return true;
	return false;
}

static void add_variable(struct spec_exec *exec, const char *name, const char *value)
{
	scoped_mem char *pair = mem_printf("%s=%s", name, value);

	if (!has_variable(exec, name))
		spec_words_add(&exec->env, pair);
}

static void show_manager(struct adding *a, const char *folder)
{
	for (size_t i = 0; i < sizeof(managers) / sizeof(managers[0]); i++) {
		scoped_mem char *needs = NULL, *real = NULL;

		if (!slice_ends(slice_of(folder), managers[i].end))
			continue;
		needs = mem_printf("%s/%s", folder, managers[i].needs);
		real = realpath(needs, NULL);
		if (real && show(a, real, real))
			add_variable(a->exec, managers[i].variable, real);
	}
}

/* Whether a folder stands in a PATH. */
static bool is_in(const char *path, const char *folder)
{
	scoped_mem char *whole = mem_printf(":%s:", path);
	scoped_mem char *wanted = mem_printf(":%s:", folder);

	return strstr(whole, wanted) != NULL;
}

static bool is_reachable(struct adding *a, const char *real, const char *guest)
{
	if (is_system(real) && is_system(guest))
		return true; /* in the host view already: /opt/tool/bin, /usr/games */
	if (is_system(real) || is_system(guest))
		return false;
	show_manager(a, real);
	if (!show(a, real, guest))
		return false;
	show_links(a, real);
	return true;
}

static bool add_folder(struct adding *a, const char *entry)
{
	scoped_mem char *real = entry[0] == '/' ? realpath(entry, NULL) : NULL;
	scoped_str struct str guest = {0};

	if (!real)
		return false;
	path_resolve(slice_of("/"), slice_of(entry), &guest);
	/* Shells add the same folder again and again. */
	if (is_in(SYSTEM_PATH, guest.p) || (a->path.p && is_in(a->path.p, guest.p)) ||
		!is_reachable(a, real, guest.p))
		return false;
	str_printf(&a->path, "%s:", guest.p);
	return true;
}

void path_folders_add_from(struct spec *spec, struct spec_exec *exec, const char *path,
	const char *home, const char *state_dir)
{
	struct adding a = {.spec = spec, .exec = exec, .home = home, .state_dir = state_dir};
	scoped_mem char *copy = mem_dup(path);
	char *rest = copy, *entry;
	int n = 0;

	while (n < FOLDERS_MAX && (entry = strsep(&rest, ":")))
		n += add_folder(&a, entry);
	if (n) {
		str_puts(&a.path, SYSTEM_PATH);
		add_variable(exec, "PATH", a.path.p);
	}
	str_done(&a.path);
}

/* "pid (comm) state ppid ...": comm may hold anything, so from its last bracket. */
static pid_t parent_of(pid_t pid, char comm[32])
{
	char path[64];
	scoped_str struct str stat = {0};
	const char *open, *close;
	int ppid = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (fdio_read_file(AT_FDCWD, path, 4096, &stat) < 0)
		return 0;
	open = strchr(stat.p, '(');
	close = strrchr(stat.p, ')');
	if (!open || !close || sscanf(close + 1, " %*c %d", &ppid) != 1)
		return 0;
	snprintf(comm, 32, "%.*s", (int)(close - open - 1), open + 1);
	return ppid;
}

/* sudo gives a PATH of its own, but keeps its caller's in its own environment. */
static bool read_sudo_path(struct str *out)
{
	pid_t pid = getppid();

	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		scoped_str struct str environ = {0};
		char path[64], comm[32] = "";
		pid_t parent = parent_of(pid, comm);

		snprintf(path, sizeof(path), "/proc/%d/environ", pid);
		if (strcmp(comm, "sudo") == 0 &&
			fdio_read_file(AT_FDCWD, path, ENVIRON_MAX, &environ) == 0)
			for (size_t at = 0; at < environ.len; at += strlen(environ.p + at) + 1)
				if (strncmp(environ.p + at, "PATH=", 5) == 0) {
					str_puts(out, environ.p + at + 5);
					return true;
				}
		pid = parent;
	}
	return false;
}

void path_folders_add(
	struct spec *spec, struct spec_exec *exec, const char *home, const char *state_dir)
{
	scoped_str struct str path = {0};
	const char *own = getenv("PATH");

	if (!(geteuid() == 0 && getenv("SUDO_UID") && read_sudo_path(&path)) && own)
		str_puts(&path, own);
	if (path.p)
		path_folders_add_from(spec, exec, path.p, home, state_dir);
}
