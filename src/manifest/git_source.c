/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/git_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "manifest/beneath.h"
#include "manifest/content.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define REF_MAX    4096
#define PACKED_MAX (64 << 20)
#define LINKS_MAX  5 /* references that name another, as git follows them */

static char *join(const char *folder, const char *name)
{
	return strcmp(folder, ".") == 0 ? mem_dup(name) : mem_printf("%s/%s", folder, name);
}

static int read_file(int git_fd, const char *path, size_t max, struct str *out)
{
	const char *name;
	struct stat st;
	scoped_fd int parent = beneath_open_parent(git_fd, path, &name);
	scoped_fd int fd = parent < 0 ? parent : content_open(parent, name, &st);

	str_reset(out);
	return fd < 0 ? fd : fdio_read_all(fd, max, out);
}

/* ---- HEAD ---- */

static int find_packed(int git_fd, struct git_text_ref *ref)
{
	scoped_str struct str text = {0};
	int r = read_file(git_fd, "packed-refs", PACKED_MAX, &text);

	if (r == 0)
		r = git_text_find_packed(str_slice(&text), ref->name, ref->id);
	if (r == 0)
		ref->name[0] = '\0';
	return r;
}

/* One reference: from its own file, else from the packed ones. */
static int read_ref(int git_fd, struct git_text_ref *ref)
{
	scoped_str struct str text = {0};
	int r = read_file(git_fd, ref->name, REF_MAX, &text);

	/* A folder of that name holds others: this one is packed, or not there. */
	if (r == -ENOENT || r == -ENOTDIR || r == -EBADF)
		return find_packed(git_fd, ref);
	return r < 0 ? r : git_text_parse_ref(str_slice(&text), ref);
}

static int read_head(struct git_source *source)
{
	struct git_text_ref ref = {.name = "HEAD"};

	for (int i = 0; i < LINKS_MAX; i++) {
		int r = read_ref(source->fd, &ref);

		if (r < 0)
			return r;
		if (ref.id[0]) {
			memcpy(source->id, ref.id, sizeof(source->id));
			return 0;
		}
		memcpy(source->branch, ref.name, sizeof(source->branch));
	}
	return -ELOOP;
}

/* ---- where it is ---- */

static bool is_bare(int top_fd, const char *path)
{
	scoped_mem char *head = join(path, "HEAD"), *objects = join(path, "objects");
	struct stat st, st2;

	return beneath_stat(top_fd, head, &st) == 0 && S_ISREG(st.st_mode) &&
	       beneath_stat(top_fd, objects, &st2) == 0 && S_ISDIR(st2.st_mode);
}

static int find_folder(
	int top_fd, const char *path, const char *shown, struct git_source *source, struct err *err)
{
	scoped_mem char *folder = join(path, ".git");
	struct stat st;
	int r = beneath_stat(top_fd, folder, &st);

	if (r == 0 && S_ISREG(st.st_mode))
		return err_set(err, -EOPNOTSUPP,
			"'%s/.git' is a file, as a worktree or a submodule has it: name the "
			"folder of the repository that it belongs to",
			shown);
	if (r == 0 && !S_ISDIR(st.st_mode))
		return err_set(err, -ELOOP, "'%s/.git' is no folder", shown);
	if (r == 0)
		source->folder = take(&folder);
	else if (is_bare(top_fd, path))
		source->folder = mem_dup(path);
	else
		return err_set(err, -ENOENT, "there is no git repository in '%s'", shown);
	source->fd = beneath_open(top_fd, source->folder, O_RDONLY | O_DIRECTORY);
	return source->fd < 0 ? err_set(err, source->fd, "open '%s': %m", shown) : 0;
}

static int refuse_head(const struct git_source *source, const char *shown, int r, struct err *err)
{
	struct stat st;

	if (beneath_stat(source->fd, "reftable", &st) == 0)
		return err_set(err, -EOPNOTSUPP,
			"'%s' keeps its branches in a reftable, which is not read here: run `git "
			"refs migrate --ref-format=files` inside",
			shown);
	if (r == -ENOENT && source->branch[0])
		return err_set(err, -ENODATA,
			"'%s' is on branch '%s', which has no commit yet: nothing to bring over",
			shown, source->branch + strlen("refs/"));
	return err_set(err, r < 0 ? r : -EBADMSG,
		"HEAD of '%s' cannot be made out: is it a whole repository?", shown);
}

int git_source_open(int top_fd, const char *path, const char *shown, struct git_source *ret_source,
	struct err *err)
{
	int r;

	*ret_source = (struct git_source){.fd = -1};
	r = find_folder(top_fd, path, shown, ret_source, err);
	if (r < 0)
		return r;
	r = read_head(ret_source);
	return r < 0 ? refuse_head(ret_source, shown, r, err) : 0;
}

void git_source_done(struct git_source *source)
{
	scoped_close(&source->fd);
	source->fd = -1;
	free(source->folder);
	source->folder = NULL;
}
