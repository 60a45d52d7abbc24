/* SPDX-License-Identifier: Apache-2.0 */
/* ls and glob. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/ops.h"
#include "files/outcome.h"
#include "files/target.h"
#include "files/walk.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/name_pattern.h"
#include "util/scoped.h"

#define NAMES_MAX  200000
#define ANSWER_MAX (4u << 20)
#define LINK_MAX   4096

static const char *kind_name(unsigned char type)
{
	static const char *const names[] = {[DT_REG] = "file",
		[DT_DIR] = "folder",
		[DT_LNK] = "link",
		[DT_FIFO] = "pipe",
		[DT_SOCK] = "socket",
		[DT_CHR] = "device",
		[DT_BLK] = "device"};

	return type < sizeof(names) / sizeof(names[0]) && names[type] ? names[type] : "other";
}

static void write_link(struct jsonw *j, int dirfd, const char *name)
{
	char text[LINK_MAX];
	ssize_t n = readlinkat(dirfd, name, text, sizeof(text));

	if (n >= 0)
		jsonw_kslice(j, "target", (struct slice){.p = text, .len = (size_t)n});
}

static void write_entry(struct jsonw *j, int dirfd, const char *name)
{
	char at[CLOCK_TEXT_LEN], mode[8];
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return; /* it is gone */
	clock_format(st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000, at);
	jsonw_object(j);
	jsonw_ktext(j, "name", name);
	jsonw_ktext(j, "kind", kind_name(IFTODT(st.st_mode)));
	jsonw_kint(j, "size", st.st_size);
	snprintf(mode, sizeof(mode), "%04o", st.st_mode & 07777);
	jsonw_ktext(j, "mode", mode);
	jsonw_kint(j, "owner", st.st_uid);
	jsonw_kint(j, "group", st.st_gid);
	jsonw_ktext(j, "modified_at", at);
	if (S_ISLNK(st.st_mode))
		write_link(j, dirfd, name);
	jsonw_object_end(j);
}

static void end_list(struct jsonw *j, const char *why)
{
	jsonw_array_end(j);
	jsonw_kbool(j, "truncated", why != NULL);
	jsonw_ktext(j, "why", why);
	jsonw_object_end(j);
	outcome_write(j->out->p, j->out->len);
}

void ops_ls(const struct files_wire_request *request)
{
	struct str out = {0};
	struct jsonw j = jsonw_to(&out);
	struct target folder;
	bool has_more;
	size_t n, i;
	char **names;

	target_find(request->path, &folder);
	names = walk_names(target_open_folder(&folder), NAMES_MAX, &n, &has_more);
	jsonw_object(&j);
	jsonw_ktext(&j, "path", folder.path);
	jsonw_key(&j, "entries");
	jsonw_array(&j);
	for (i = 0; i < n && i < (size_t)request->limit && out.len < ANSWER_MAX; i++)
		write_entry(&j, folder.fd, names[i]);
	outcome_used(folder.path);
	end_list(&j, i < n ? "limit" : has_more ? "entries" : NULL);
}

struct glob {
	const struct files_wire_request *request;
	const char *folder;
	struct jsonw j;
	int64_t n;
};

static bool on_found(void *ctx, const struct walk_entry *entry)
{
	struct glob *glob = ctx;
	scoped_mem char *path = NULL;

	if (!name_pattern_matches(glob->request->pattern, entry->path))
		return true;
	if (glob->n == glob->request->limit || glob->j.out->len > ANSWER_MAX)
		return false;
	path = mem_printf(
		"%s%s%s", glob->folder, strcmp(glob->folder, "/") == 0 ? "" : "/", entry->path.p);
	glob->n++;
	jsonw_object(&glob->j);
	jsonw_ktext(&glob->j, "path", path);
	jsonw_ktext(&glob->j, "kind", kind_name(entry->type));
	jsonw_object_end(&glob->j);
	return true;
}

static bool leads(void *ctx, struct slice folder)
{
	const struct glob *glob = ctx;

	return name_pattern_leads(glob->request->pattern, folder);
}

void ops_glob(const struct files_wire_request *request)
{
	struct str out = {0};
	struct glob glob = {.request = request, .j = jsonw_to(&out)};
	struct walk walk = {.deadline_ns = clock_mono_ns() + OPS_TIME_MS * CLOCK_NS_PER_MS,
		.on_entry = on_found,
		.is_wanted = leads,
		.ctx = &glob};
	struct target folder;

	target_find(request->path, &folder);
	glob.folder = folder.path;
	jsonw_object(&glob.j);
	jsonw_ktext(&glob.j, "path", folder.path);
	jsonw_key(&glob.j, "matches");
	jsonw_array(&glob.j);
	outcome_used(folder.path);
	end_list(&glob.j, walk_end_name(walk_folder(&walk, target_open_folder(&folder))));
}
