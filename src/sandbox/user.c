/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "util/str.h"

#define FILE_MAX_LEN (1u << 20)
#define LAST_ID      65535u

/* The agent may have put anything in its place: no links out, no other filesystem, no waiting on a pipe. */
static int read_inside(int root_fd, const char *path, struct str *out)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
	scoped_fd int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return fdio_read_all(fd, FILE_MAX_LEN, out);
}

static int parse_id(const char *text, size_t len, uint32_t *ret_id)
{
	uint32_t v = 0;

	if (len == 0 || len > 5)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		v = v * 10 + (uint32_t)(text[i] - '0');
	}
	*ret_id = v;
	return v <= LAST_ID ? 0 : -ERANGE;
}

/* Field number i of a line split at colons. */
static struct slice field(const char *line, size_t line_len, size_t i)
{
	const char *end = line + line_len, *p = line;

	for (; i > 0; i--) {
		p = memchr(p, ':', (size_t)(end - p));
		if (!p)
			return (struct slice){0};
		p++;
	}
	line = memchr(p, ':', (size_t)(end - p));
	return (struct slice){.p = p, .len = (size_t)((line ? line : end) - p)};
}

int user_parse_passwd(const char *passwd, const char *name, uint32_t uid, struct user *ret_user)
{
	size_t len;

	for (const char *line = passwd; *line; line += len + (line[len] == '\n')) {
		struct slice id, group, home, who;
		uint32_t line_uid, line_gid;

		len = strcspn(line, "\n");
		who = field(line, len, 0);
		id = field(line, len, 2);
		group = field(line, len, 3);
		home = field(line, len, 5);
		if (parse_id(id.p, id.len, &line_uid) < 0 ||
			parse_id(group.p, group.len, &line_gid) < 0)
			continue;
		if (name ? !slice_is(who, name) : line_uid != uid)
			continue;
		ret_user->uid = line_uid;
		ret_user->gid = line_gid;
		(void)snprintf(ret_user->name, sizeof(ret_user->name), "%.*s", (int)who.len, who.p);
		(void)snprintf(
			ret_user->home, sizeof(ret_user->home), "%.*s", (int)home.len, home.p);
		return 1;
	}
	return 0;
}

static bool is_member(struct slice members, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < members.len;) {
		const char *comma = memchr(members.p + i, ',', members.len - i);
		size_t len = comma ? (size_t)(comma - members.p) - i : members.len - i;

		if (len == n && memcmp(members.p + i, name, n) == 0)
			return true;
		i += len + 1;
	}
	return false;
}

static void add_groups(struct user *user, int root_fd)
{
	scoped_str struct str text = {0};
	size_t len;
	uint32_t gid;

	if (read_inside(root_fd, "etc/group", &text) < 0 || !text.p)
		return; /* none then */
	for (const char *line = text.p; *line; line += len + (line[len] == '\n')) {
		struct slice id;

		len = strcspn(line, "\n");
		id = field(line, len, 2);
		if (user->n_groups < USER_MAX_GROUPS && parse_id(id.p, id.len, &gid) == 0 &&
			gid != user->gid && is_member(field(line, len, 3), user->name))
			user->groups[user->n_groups++] = gid;
	}
}

static int find_named(struct user *user, const char *name, int root_fd, struct err *err)
{
	scoped_str struct str text = {0};
	int r = read_inside(root_fd, "etc/passwd", &text);

	if (r < 0)
		return err_set(err, r, "look up user '%s' in the sandbox's /etc/passwd: %m", name);
	if (!text.p || !user_parse_passwd(text.p, name, 0, user))
		return err_set(err, -ENOENT, "the sandbox has no user '%s'", name);
	add_groups(user, root_fd);
	return 0;
}

static int bad_form(const char *text, struct err *err)
{
	return err_set(err, -EINVAL,
		"user '%s': want NAME or UID, or either with :GROUP or :GID, ids up to 65535",
		text);
}

/* What stands behind the colon: a number, or a name in the sandbox's own /etc/group. */
static int set_group(
	struct user *user, const char *group, const char *text, int root_fd, struct err *err)
{
	scoped_str struct str groups = {0};
	size_t len;
	int r = parse_id(group, strlen(group), &user->gid);

	if (r == 0)
		return 0;
	if (r == -ERANGE || !*group)
		return bad_form(text, err);
	r = read_inside(root_fd, "etc/group", &groups);
	if (r < 0)
		return err_set(err, r, "look up group '%s' in the sandbox's /etc/group: %m", group);
	for (const char *line = groups.p ? groups.p : ""; *line;
		line += len + (line[len] == '\n')) {
		struct slice id;

		len = strcspn(line, "\n");
		id = field(line, len, 2);
		if (slice_is(field(line, len, 0), group) && parse_id(id.p, id.len, &user->gid) == 0)
			return 0;
	}
	return err_set(err, -ENOENT, "the sandbox has no group '%s'", group);
}

static int find_numbered(struct user *user, int root_fd)
{
	scoped_str struct str passwd = {0};
	uint32_t uid = user->uid;

	user->gid = uid;
	(void)snprintf(user->name, sizeof(user->name), "%u", uid);
	(void)snprintf(user->home, sizeof(user->home), "/");
	if (read_inside(root_fd, "etc/passwd", &passwd) >= 0 && passwd.p)
		(void)user_parse_passwd(
			passwd.p, NULL, uid, user); /* a number needs no line there */
	return 0;
}

int user_find(struct user *ret_user, const char *text, int root_fd, struct err *err)
{
	const char *colon = text ? strchr(text, ':') : NULL;
	size_t len = colon ? (size_t)(colon - text) : text ? strlen(text) : 0;
	struct user user = {.name = "root", .home = "/root", .n_groups = 1};
	scoped_mem char *name = text ? mem_copy(text, len) : NULL;
	int r = text ? parse_id(text, len, &user.uid) : 0;

	if (r == -ERANGE || (text && len == 0))
		return bad_form(text, err);
	if (text)
		r = r == 0 ? find_numbered(&user, root_fd) : find_named(&user, name, root_fd, err);
	if (r == 0 && colon)
		r = set_group(&user, colon + 1, text, root_fd, err);
	if (r < 0)
		return r;
	user.groups[0] = user.gid;
	*ret_user = user;
	return 0;
}
