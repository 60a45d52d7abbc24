/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/patch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/beneath.h"
#include "manifest/lower.h"
#include "manifest/manifest_internal.h"
#include "manifest/stack.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/scoped.h"

#define DEPTH_MAX 300
#define LOOKED_AT 8000 /* bytes in which a NUL makes a file binary, as git has it */

struct patch {
	struct patch_config config;
	struct stack stack;
	int lower_fd;
	const char *below; /* the list's root as a path in the layers, "" for their top; borrowed */
	struct map *told;  /* places below that the list tells something of: the change */
};

/* One side of a change. */
struct side {
	const struct change_side *is;
	struct str text; /* a file's content, or a link's target */
	bool is_text;
	int r; /* why its content is not there */
};

/* Of a list of /etc in a layer at /: "etc". */
static const char *below_layer(const struct changes *changes)
{
	const char *rest = changes->root + strlen(changes->layer->guest);

	return strcmp(changes->layer->guest, "/") == 0 ? changes->root + 1 : *rest ? rest + 1 : "";
}

int patch_open(const struct patch_config *config, struct patch **ret_patch, struct err *err)
{
	const struct change_layer *layer = config->changes->layer;
	scoped(patch) struct patch *patch = new0(struct patch);
	int r;

	patch->config = *config;
	patch->lower_fd = -1;
	r = stack_open(layer, &patch->stack);
	if (r < 0)
		return err_set(err, r, "open '%s': %m", layer->upper);
	patch->lower_fd = lower_open_layer(layer);
	if (patch->lower_fd < 0)
		return err_set(err, patch->lower_fd, "open what lies below '%s': %m", layer->guest);
	patch->below = below_layer(config->changes);
	patch->told = map_new();
	for (size_t i = 0; i < config->changes->n_items; i++) {
		struct change *c = &config->changes->items[i];

		if (c->kind != CHANGE_ADDED)
			*map_slot(patch->told, slice_of(c->from ? c->from : c->path)) = c;
	}
	*ret_patch = take(&patch);
	return 0;
}

void patch_free(struct patch *patch)
{
	if (!patch)
		return;
	stack_done(&patch->stack);
	scoped_close(&patch->lower_fd);
	map_free(patch->told);
	free(patch);
}

/* ---- what both sides hold ---- */

static int read_file(int dirfd, const char *path, struct str *text)
{
	scoped_fd int fd = beneath_open(dirfd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EBADF;
	return st.st_size > PATCH_TEXT_MAX ? -EFBIG : fdio_read_all(fd, PATCH_TEXT_MAX, text);
}

static void read_side(struct side *side, int dirfd, const char *path)
{
	size_t n;

	if (S_ISLNK(side->is->mode))
		str_puts(&side->text, side->is->target ? side->is->target : "");
	else if (S_ISREG(side->is->mode))
		side->r = read_file(dirfd, path, &side->text);
	n = side->text.len < LOOKED_AT ? side->text.len : LOOKED_AT;
	side->is_text = side->r == 0 && (n == 0 || !memchr(side->text.p, '\0', n));
}

static bool is_in_patch(const struct change_side *side)
{
	return S_ISREG(side->mode) || S_ISLNK(side->mode);
}

/* ---- names ---- */

/* As git quotes them: in double quotes, with escapes, where a byte of it would break a line or could be misread. Also a
 * folder whose name ends in a space, which git writes as it is and then cannot read. */
static void add_name(struct str *out, const char *prefix, const char *path)
{
	scoped_str struct str quoted = {0};
	bool is_odd = strstr(path, " /") != NULL;

	for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
		if (*p == '"' || *p == '\\')
			str_printf(&quoted, "\\%c", *p);
		else if (*p < ' ' || *p >= 0x7f)
			str_printf(&quoted, "\\%03o", *p);
		else
			str_putc(&quoted, (char)*p);
		is_odd |= *p == '"' || *p == '\\' || *p < ' ' || *p >= 0x7f;
	}
	str_printf(out, is_odd ? "\"%s%s\"" : "%s%s", prefix, quoted.p ? quoted.p : "");
}

static void add_line(struct str *out, const char *words, const char *prefix, const char *path)
{
	str_puts(out, words);
	add_name(out, prefix, path);
	/* patch(1) takes what follows a blank for a time stamp. */
	str_puts(out, path && strchr(path, ' ') && prefix[0] ? "\t\n" : "\n");
}

/* ---- the lines of one change ---- */

static unsigned git_mode(mode_t mode)
{
	return S_ISLNK(mode) ? 0120000 : mode & 0111 ? 0100755 : 0100644;
}

struct pair {
	const char *from, *to;     /* paths */
	struct side before, after; /* is NULL: not there */
};

static void add_modes(struct str *out, const struct pair *p)
{
	const struct change_side *a = p->before.is, *b = p->after.is;

	if (b && !a)
		str_printf(out, "new file mode %06o\n", git_mode(b->mode));
	else if (a && !b)
		str_printf(out, "deleted file mode %06o\n", git_mode(a->mode));
	else if (a && b && git_mode(a->mode) != git_mode(b->mode))
		str_printf(out, "old mode %06o\nnew mode %06o\n", git_mode(a->mode),
			git_mode(b->mode));
}

static void add_head(struct str *out, const struct pair *p, bool is_rename)
{
	str_puts(out, "diff --git ");
	add_name(out, "a/", p->from);
	str_putc(out, ' ');
	add_name(out, "b/", p->to);
	str_putc(out, '\n');
	add_modes(out, p);
	if (is_rename) {
		add_line(out, "rename from ", "", p->from);
		add_line(out, "rename to ", "", p->to);
	}
}

static void add_side_note(struct str *out, const char *word, const struct side *side)
{
	if (!side->is)
		return;
	str_printf(out, "# %s: %lld bytes, sha256 %s", word, (long long)side->is->size,
		side->is->sha256[0] ? side->is->sha256 : "not known");
	if (side->r < 0 && side->r != -EFBIG)
		str_printf(out, " (%s)", strerror(-side->r));
	str_putc(out, '\n');
}

static void add_binary(struct str *out, const struct pair *p)
{
	const struct change_side *a = p->before.is, *b = p->after.is;

	/* git passes over a head of one line, and what follows it is then read as part of the patch before. */
	if (a && b && git_mode(a->mode) == git_mode(b->mode) && strcmp(p->from, p->to) == 0)
		str_printf(out, "old mode %06o\nnew mode %06o\n", git_mode(a->mode),
			git_mode(b->mode));
	str_puts(out, "Binary files ");
	if (p->before.is)
		add_name(out, "a/", p->from);
	else
		str_puts(out, "/dev/null");
	str_puts(out, " and ");
	if (p->after.is)
		add_name(out, "b/", p->to);
	else
		str_puts(out, "/dev/null");
	str_puts(out, " differ\n");
	add_side_note(out, "before", &p->before);
	add_side_note(out, "after", &p->after);
}

static bool is_same(const struct pair *p)
{
	const struct str *a = &p->before.text, *b = &p->after.text;

	return a->len == b->len && (a->len == 0 || memcmp(a->p, b->p, a->len) == 0);
}

static int add_text(struct patch *patch, const struct pair *p, struct str *out)
{
	scoped_str struct str hunks = {0};
	int r = is_same(p) ? 0
	                   : patch->config.compare(patch->config.ctx, str_slice(&p->before.text),
				     str_slice(&p->after.text), &hunks);

	if (r < 0 || hunks.len == 0)
		return r;
	if (p->before.is)
		add_line(out, "--- ", "a/", p->from);
	else
		str_puts(out, "--- /dev/null\n");
	if (p->after.is)
		add_line(out, "+++ ", "b/", p->to);
	else
		str_puts(out, "+++ /dev/null\n");
	str_add(out, hunks.p, hunks.len);
	return 0;
}

/* Two texts that take too long to compare must not hide what else was changed: they are told as what is no text. */
static int add_pair(struct patch *patch, const struct pair *p, struct str *out)
{
	bool is_text = (!p->before.is || p->before.is_text) && (!p->after.is || p->after.is_text);
	int r;

	if (p->before.is && p->after.is && is_same(p) && p->before.r == 0 && p->after.r == 0 &&
		strcmp(p->from, p->to) == 0 &&
		git_mode(p->before.is->mode) == git_mode(p->after.is->mode))
		return 0; /* what else differs no patch can hold */
	add_head(out, p, p->before.is && p->after.is && strcmp(p->from, p->to) != 0);
	r = is_text ? add_text(patch, p, out) : -EBADF;
	if (r == -ENOENT)
		return r;
	if (r < 0)
		add_binary(out, p);
	return 0;
}

/* A link that became a file, or the other way round, is one that went and one that came, as git has it. */
static int add_sides(struct patch *patch, struct pair *p, struct str *out)
{
	const struct change_side *a = p->before.is, *b = p->after.is;
	int r;

	if (!a || !b || S_ISLNK(a->mode) == S_ISLNK(b->mode))
		return add_pair(patch, p, out);
	p->after.is = NULL;
	r = add_pair(
		patch, &(struct pair){.from = p->from, .to = p->from, .before = p->before}, out);
	p->after.is = b;
	return r < 0 ? r
	             : add_pair(patch,
			       &(struct pair){.from = p->to, .to = p->to, .after = p->after}, out);
}

/* ---- renamed folders: a patch knows files only ---- */

struct moved {
	const struct patch *patch;
	int dirfd;
	const char *from, *to;
	int depth;
	struct str *out;
};

static int add_moved(const struct moved *m);

/* What the list tells of it by itself. */
static bool is_told(const struct patch *patch, const char *path, bool is_folder)
{
	const struct change *c = map_find(patch->told, slice_of(path));

	return c && (!is_folder || c->kind == CHANGE_RENAMED || c->kind == CHANGE_REMOVED);
}

static int on_moved_name(void *data, const char *name)
{
	const struct moved *m = data;
	scoped_mem char *from = scan_join(m->from, name), *to = scan_join(m->to, name);
	struct moved below = {
		.patch = m->patch, .from = from, .to = to, .depth = m->depth + 1, .out = m->out};
	struct stat st;
	int r = 0;

	if (fstatat(m->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return scan_is_gone(-errno) ? 0 : -errno;
	if (scan_skipped_len(to) > 0 || is_told(m->patch, from, S_ISDIR(st.st_mode)))
		return 0;
	if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		add_head(m->out, &(struct pair){.from = from, .to = to}, true);
	if (!S_ISDIR(st.st_mode))
		return 0;
	below.dirfd = openat(m->dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = below.dirfd < 0 ? -errno : add_moved(&below);
	scoped_close(&below.dirfd);
	return scan_is_gone(r) ? 0 : r;
}

static int add_moved(const struct moved *m)
{
	if (m->depth <= DEPTH_MAX)
		return scan_each_name(m->dirfd, on_moved_name, (void *)m);
	str_puts(m->out, "# not in this patch, more than 300 folders deep: ");
	log_add_escaped(m->out, slice_of(m->to));
	str_putc(m->out, '\n');
	return 0;
}

static int add_moved_folder(const struct patch *patch, const struct change *c, struct str *out)
{
	scoped_mem char *from = scan_join(patch->below, c->from);
	scoped_fd int dirfd = beneath_open(patch->lower_fd, from, O_RDONLY | O_DIRECTORY);
	struct moved m = {
		.patch = patch, .dirfd = dirfd, .from = c->from, .to = c->path, .out = out};

	if (dirfd < 0)
		return scan_is_gone(dirfd) ? 0 : dirfd;
	return add_moved(&m);
}

static void read_sides(const struct patch *patch, const struct change *c, struct pair *p)
{
	const char *data = changes_data_path(c);
	scoped_mem char *before = scan_join(patch->below, c->from ? c->from : c->path);
	scoped_mem char *after = scan_join(patch->below, c->path);

	if (p->before.is)
		read_side(&p->before, patch->lower_fd, before);
	if (c->flags & CHANGE_LOST)
		p->after.r = -ESTALE;
	else if (p->after.is && c->data)
		read_side(&p->after, patch->lower_fd, c->data);
	else if (p->after.is)
		read_side(&p->after, patch->stack.fds[changes_data_layer(c)],
			data == c->path ? after : data);
}

int patch_add(struct patch *patch, const struct change *c, struct str *out)
{
	const char *base = c->from ? c->from : c->path;
	struct pair p = {.from = base, .to = c->path};
	int r;

	if (!changes_is_listed(c))
		return 0;
	if (c->kind == CHANGE_RENAMED && S_ISDIR(c->after.mode))
		return add_moved_folder(patch, c, out);
	if (c->kind != CHANGE_ADDED && is_in_patch(&c->before))
		p.before.is = &c->before;
	if (c->kind != CHANGE_REMOVED && is_in_patch(&c->after))
		p.after.is = &c->after;
	if (!p.before.is && !p.after.is)
		return 0;
	if (!p.before.is)
		p.from = p.to;
	if (!p.after.is)
		p.from = p.to = changes_shown_path(c);
	read_sides(patch, c, &p);
	r = add_sides(patch, &p, out);
	str_done(&p.before.text);
	str_done(&p.after.text);
	return r;
}
