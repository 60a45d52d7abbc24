/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host_git.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/caller_tool.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/scoped.h"

#define LIMIT_S   900
#define OUT_MAX   (1 << 20)
#define WHY_MAX   (64 << 10)
#define PATH_ELSE "/usr/local/bin:/usr/bin:/bin"

/* Also against what the repository's own configuration asks for: this is no moment to run it, or to fetch more. */
static const char *const settings[] = {
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.alternateRefsCommand=true",
	"transfer.fsckObjects=true",
	"fetch.fsckObjects=true",
	"fetch.recurseSubmodules=false",
	"fetch.prune=false",
	"fetch.pruneTags=false",
	"submodule.recurse=false",
	"gc.auto=0",
	"maintenance.auto=false",
};
#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))

static const char *const fixed_env[] = {
	"LC_ALL=C",
	"HOME=/nonexistent",
	"GIT_CONFIG_NOSYSTEM=1",
	"GIT_CONFIG_SYSTEM=/dev/null",
	"GIT_CONFIG_GLOBAL=/dev/null",
	"GIT_ATTR_NOSYSTEM=1",
	"GIT_ALLOW_PROTOCOL=file",
	"GIT_NO_LAZY_FETCH=1",
	"GIT_NO_REPLACE_OBJECTS=1",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_COMMITTER_NAME=cloche",
	"GIT_COMMITTER_EMAIL=cloche@localhost",
	"GIT_REFLOG_ACTION=cloche apply --branch",
};
#define N_FIXED (sizeof(fixed_env) / sizeof(fixed_env[0]))

static void drop_line_end(struct str *out)
{
	while (out->len > 0 && out->p[out->len - 1] == '\n')
		out->p[--out->len] = '\0';
}

static void fill_argv(const char *const *args, const char **argv)
{
	size_t n = 0;

	argv[n++] = "git";
	for (size_t i = 0; i < N_SETTINGS; i++) {
		argv[n++] = "-c";
		argv[n++] = settings[i];
	}
	for (size_t i = 0; args[i] && i < HOST_GIT_ARGS_MAX; i++)
		argv[n++] = args[i];
	argv[n] = NULL;
}

static void fill_env(const char *path, const char *dir, const char **env)
{
	memcpy(env, fixed_env, sizeof(fixed_env));
	env[N_FIXED] = path;
	env[N_FIXED + 1] = dir;
	env[N_FIXED + 2] = NULL;
}

int host_git_run(
	const struct host_git *git, const char *const *args, struct str *out, struct str *why)
{
	const char *argv[2 + 2 * N_SETTINGS + HOST_GIT_ARGS_MAX], *env[N_FIXED + 3];
	const char *found = getenv("PATH");
	scoped_mem char *path = mem_printf("PATH=%s", found && *found ? found : PATH_ELSE);
	scoped_mem char *dir = mem_printf("GIT_DIR=%s", git->dir);
	scoped_fd int err_fd = memfd_create("git", MFD_CLOEXEC);
	const struct caller_tool_as as = {.uid = git->uid,
		.gid = git->gid,
		.dir_fd = git->dir_fd,
		.env = env,
		.limit_s = LIMIT_S,
		.err_fd = err_fd};
	int r;

	if (err_fd < 0)
		return -errno;
	fill_argv(args, argv);
	fill_env(path, dir, env);
	str_reset(out);
	str_reset(why);
	r = caller_tool_run(
		git->cli, &(struct caller_tool){.argv = argv, .max = OUT_MAX, .as = &as}, out);
	drop_line_end(out);
	if (lseek(err_fd, 0, SEEK_SET) == 0 && fdio_read_all(err_fd, WHY_MAX, why) == 0)
		drop_line_end(why);
	return r;
}
