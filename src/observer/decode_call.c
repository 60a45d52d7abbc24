/* SPDX-License-Identifier: Apache-2.0 */
/* What system calls do to files. */
#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "observer/calls.h"
#include "observer/decode_internal.h"

/* The kernel's file modes: include/linux/fs.h. */
#define FMODE_READ      1u
#define FMODE_WRITE     2u
#define FMODE_PATH      (1u << 14)
#define FMODE_CREATED   (1u << 20)

#define RENAME_EXCHANGE 2u

static const char *type_name(unsigned mode)
{
	switch (mode & S_IFMT) {
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
		return "char";
	case S_IFBLK:
		return "block";
	case S_IFLNK:
		return "symlink";
	default:
		return NULL;
	}
}

/* ---- names ---- */

/* The name that is the file object's place. */
static void set_file(
	struct decode *d, struct decoded *one, const struct wire_call *c, struct slice base)
{
	bool rooted = !(c->head.flags & (WIRE_CUT1 | WIRE_INTERNAL1));
	struct event *ev = &one->ev;

	decode_path(base.p, base.len, rooted, &d->paths[0]);
	if (d->paths[0].len == 0)
		str_puts(&d->paths[0], type_name(c->imode) ? type_name(c->imode) : "anonymous");
	event_set(ev, path, str_slice(&d->paths[0]));
	if (c->head.flags & WIRE_INTERNAL1)
		event_set_text(ev, path_state, "memory");
	else if (c->head.flags & WIRE_DELETED1)
		event_set_text(ev, path_state, "deleted");
	if (c->head.flags & WIRE_CUT1)
		event_set(ev, path_unresolved, true);
}

struct parts {
	struct slice text[2], base[2];
	bool unstable; /* somebody wrote to a text meanwhile */
};

/* Text ends with a NUL that is part of its length. */
static int cut_parts(const struct wire_call *c, struct decode_rest rest, struct parts *ret)
{
	ret->unstable = false;
	for (int i = 0; i < 2; i++) {
		struct slice *text = &ret->text[i], again;

		if (decode_cut(&rest, c->text_len[i], text) < 0 ||
			decode_cut(&rest, c->base_len[i], &ret->base[i]) < 0 ||
			decode_cut(&rest, c->again_len[i], &again) < 0)
			return -EBADMSG;
		ret->unstable |= again.len > 0 && !slice_eq(again, *text);
		if (text->len == 0)
			continue;
		if (text->p[text->len - 1] != '\0' || c->skip[i] >= text->len)
			return -EBADMSG;
		text->p += c->skip[i];
		text->len -= 1u + c->skip[i];
		while (c->skip[i] > 0 && text->len > 0 && text->p[0] == '/') {
			text->p++; /* of "/proc/self/fd/5/name", behind the folder that 5 is */
			text->len--;
		}
	}
	return 0;
}

static int add_name(struct decode *d, struct decoded *one, const struct wire_call *c,
	const struct parts *parts, int i, enum event_field field)
{
	unsigned cut = i == 0 ? WIRE_CUT1 : WIRE_CUT2;

	if (c->text_len[i] == 0)
		return -EBADMSG;
	decode_path(parts->base[i].p, parts->base[i].len, !(c->head.flags & cut), &d->paths[i]);
	one->names[one->n_names++] = (struct decode_name){
		.field = field,
		.base = str_slice(&d->paths[i]),
		.text = parts->text[i],
		.cut = c->head.flags & cut,
	};
	return 0;
}

/* The one name of a call: its file, or text. */
static int add_path(struct decode *d, struct decoded *one, const struct wire_call *c,
	const struct parts *parts, bool follow)
{
	if (c->head.flags & WIRE_FILE) {
		set_file(d, one, c, parts->base[0]);
		return 0;
	}
	if (add_name(d, one, c, parts, 0, EVENT_F_path) < 0)
		return -EBADMSG;
	one->names[0].follow = follow;
	return 0;
}

/* ---- calls ---- */

static const char *access_of_flags(unsigned flags)
{
	static const char *const names[] = {"read", "write", "read_write", "none"};

	return flags & O_PATH ? "path" : names[flags & O_ACCMODE];
}

static const char *access_of_file(unsigned fmode)
{
	static const char *const names[] = {"none", "read", "write", "read_write"};

	return fmode & FMODE_PATH ? "path" : names[fmode & (FMODE_READ | FMODE_WRITE)];
}

static int decode_open(struct decode *d, const struct wire_call *c, const struct parts *parts)
{
	unsigned flags =
		c->head.nr == __NR_creat ? O_CREAT | O_WRONLY | O_TRUNC : (unsigned)c->arg[0];
	bool file = c->head.flags & WIRE_FILE, created = file && c->fmode & FMODE_CREATED;
	struct decoded *one = decode_add(d, &c->head, EVENT_FILE_OPEN);
	struct event *ev = &one->ev;

	event_set_text(ev, access, file ? access_of_file(c->fmode) : access_of_flags(flags));
	if (flags & O_CREAT && !(flags & O_PATH))
		event_set(ev, create, true);
	if (created)
		event_set(ev, created, true);
	else if (flags & O_TRUNC && c->head.ret >= 0 && !(flags & O_PATH))
		event_set(ev, truncate, true);
	if (file && S_ISDIR(c->imode))
		event_set(ev, directory, true);
	else if (file)
		event_set_text(ev, type, type_name(c->imode));
	return add_path(d, one, c, parts, !(flags & O_NOFOLLOW) && c->head.ret != -ENOENT);
}

static int decode_delete(struct decode *d, const struct wire_call *c, const struct parts *parts)
{
	struct decoded *one = decode_add(d, &c->head, EVENT_FILE_DELETE);

	if (c->head.nr == __NR_rmdir || (c->head.nr == __NR_unlinkat && c->arg[0] & AT_REMOVEDIR))
		event_set(&one->ev, directory, true);
	one->claim = DECODE_CLAIM_GONE;
	return add_path(d, one, c, parts, false);
}

static int decode_mkdir(struct decode *d, const struct wire_call *c, const struct parts *parts)
{
	struct decoded *one = decode_add(d, &c->head, EVENT_DIR_CREATE);

	event_set(&one->ev, mode, (int64_t)(c->arg[0] & 07777));
	one->claim = DECODE_CLAIM_EXISTS;
	return add_path(d, one, c, parts, false);
}

static int decode_mknod(struct decode *d, const struct wire_call *c, const struct parts *parts)
{
	struct decoded *one = decode_add(d, &c->head, EVENT_FILE_OPEN);

	event_set_text(&one->ev, access, "none");
	event_set(&one->ev, create, true);
	if (c->head.ret == 0)
		event_set(&one->ev, created, true);
	event_set_text(&one->ev, type, type_name((unsigned)c->arg[0]));
	one->claim = DECODE_CLAIM_EXISTS;
	return add_path(d, one, c, parts, false);
}

/* A socket's name is no longer than its address: what the text has beyond that is not part of it. */
static int decode_bind(struct decode *d, const struct wire_call *c, const struct parts *parts)
{
	struct decoded *one = decode_add(d, &c->head, EVENT_FILE_OPEN);
	size_t max = (size_t)c->arg[1] - 2;

	event_set_text(&one->ev, access, "none");
	event_set(&one->ev, create, true);
	if (c->head.ret == 0)
		event_set(&one->ev, created, true);
	event_set_text(&one->ev, type, "socket");
	one->claim = DECODE_CLAIM_EXISTS;
	if (add_path(d, one, c, parts, false) < 0)
		return -EBADMSG;
	if (one->n_names > 0 && one->names[0].text.len > max)
		one->names[0].text.len = max;
	return 0;
}

static int decode_truncate(struct decode *d, const struct wire_call *c, const struct parts *parts)
{
	struct decoded *one = decode_add(d, &c->head, EVENT_FILE_TRUNCATE);

	event_set(&one->ev, size, (int64_t)c->arg[0]);
	one->claim = DECODE_CLAIM_EXISTS;
	return add_path(d, one, c, parts, true);
}

static int decode_rename(struct decode *d, const struct wire_call *c, const struct parts *parts)
{
	struct decoded *one = decode_add(d, &c->head, EVENT_FILE_RENAME);

	if (c->head.nr == __NR_renameat2 && c->arg[0] & RENAME_EXCHANGE)
		event_set(&one->ev, exchange, true);
	else
		one->claim = DECODE_CLAIM_MOVED;
	if (add_name(d, one, c, parts, 0, EVENT_F_from) < 0)
		return -EBADMSG;
	return add_name(d, one, c, parts, 1, EVENT_F_to);
}

static int decode_link(struct decode *d, const struct wire_call *c, const struct parts *parts)
{
	struct decoded *one = decode_add(d, &c->head, EVENT_FILE_LINK);

	one->claim = DECODE_CLAIM_EXISTS;
	if (add_name(d, one, c, parts, 0, EVENT_F_target) < 0)
		return -EBADMSG;
	one->names[0].follow = c->head.nr == __NR_linkat && c->arg[0] & AT_SYMLINK_FOLLOW;
	return add_name(d, one, c, parts, 1, EVENT_F_path);
}

static int decode_symlink(struct decode *d, const struct wire_call *c, const struct parts *parts)
{
	struct decoded *one = decode_add(d, &c->head, EVENT_FILE_LINK);

	event_set(&one->ev, target, parts->text[0]);
	event_set(&one->ev, symbolic, true);
	one->claim = DECODE_CLAIM_EXISTS;
	return add_name(d, one, c, parts, 1, EVENT_F_path);
}

static int decode_chmod(struct decode *d, const struct wire_call *c, const struct parts *parts)
{
	struct decoded *one = decode_add(d, &c->head, EVENT_FILE_MODE);
	bool follow = !(c->head.nr == __NR_fchmodat2 && c->arg[1] & AT_SYMLINK_NOFOLLOW);

	event_set_text(&one->ev, what, "mode");
	event_set(&one->ev, mode, (int64_t)(c->arg[0] & 07777));
	one->claim = DECODE_CLAIM_EXISTS;
	return add_path(d, one, c, parts, follow);
}

static int decode_chown(struct decode *d, const struct wire_call *c, const struct parts *parts)
{
	struct decoded *one = decode_add(d, &c->head, EVENT_FILE_MODE);

	event_set_text(&one->ev, what, "owner");
	if ((int)c->arg[0] != -1)
		event_set(&one->ev, owner, (uint32_t)c->arg[0]);
	if ((int)c->arg[1] != -1)
		event_set(&one->ev, group, (uint32_t)c->arg[1]);
	one->claim = DECODE_CLAIM_EXISTS;
	return add_path(d, one, c, parts, c->head.nr != __NR_lchown);
}

static int decode_xattr(struct decode *d, const struct wire_call *c, const struct parts *parts)
{
	struct decoded *one = decode_add(d, &c->head, EVENT_FILE_MODE);
	bool link = c->head.nr == __NR_lsetxattr || c->head.nr == __NR_lremovexattr;

	event_set_text(&one->ev, what, "xattr");
	if (c->text_len[1] > 0)
		event_set(&one->ev, name, parts->text[1]);
	one->claim = DECODE_CLAIM_EXISTS;
	return add_path(d, one, c, parts, !link);
}

static const struct {
	unsigned nr;
	int (*decode)(struct decode *d, const struct wire_call *c, const struct parts *parts);
} decoders[] = {
	{__NR_openat, decode_open},
	{__NR_open, decode_open},
	{__NR_openat2, decode_open},
	{__NR_creat, decode_open},
	{__NR_open_by_handle_at, decode_open},
	{__NR_unlink, decode_delete},
	{__NR_unlinkat, decode_delete},
	{__NR_rmdir, decode_delete},
	{__NR_rename, decode_rename},
	{__NR_renameat, decode_rename},
	{__NR_renameat2, decode_rename},
	{__NR_mkdir, decode_mkdir},
	{__NR_mkdirat, decode_mkdir},
	{__NR_mknod, decode_mknod},
	{__NR_mknodat, decode_mknod},
	{__NR_bind, decode_bind},
	{__NR_truncate, decode_truncate},
	{__NR_ftruncate, decode_truncate},
	{__NR_link, decode_link},
	{__NR_linkat, decode_link},
	{__NR_symlink, decode_symlink},
	{__NR_symlinkat, decode_symlink},
	{__NR_chmod, decode_chmod},
	{__NR_fchmod, decode_chmod},
	{__NR_fchmodat, decode_chmod},
	{__NR_fchmodat2, decode_chmod},
	{__NR_chown, decode_chown},
	{__NR_fchown, decode_chown},
	{__NR_lchown, decode_chown},
	{__NR_fchownat, decode_chown},
	{__NR_setxattr, decode_xattr},
	{__NR_lsetxattr, decode_xattr},
	{__NR_fsetxattr, decode_xattr},
	{__NR_setxattrat, decode_xattr},
	{__NR_removexattr, decode_xattr},
	{__NR_lremovexattr, decode_xattr},
	{__NR_fremovexattr, decode_xattr},
	{__NR_removexattrat, decode_xattr},
};

int decode_call(struct decode *d, const struct wire_call *c, struct decode_rest rest)
{
	struct parts parts;

	/* its own filter answered "here is your descriptor" and there is none */
	if (c->head.ret >= 0 && c->head.flags & WIRE_OWN_FILTER && !(c->head.flags & WIRE_FILE) &&
		(c->head.nr == __NR_open || c->head.nr == __NR_openat ||
			c->head.nr == __NR_openat2))
		return 0;
	if (cut_parts(c, rest, &parts) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < sizeof(decoders) / sizeof(decoders[0]); i++)
		if (decoders[i].nr == c->head.nr) {
			int r = decoders[i].decode(d, c, &parts);

			d->events[0].unstable = parts.unstable;
			return r;
		}
	return -EBADMSG;
}
