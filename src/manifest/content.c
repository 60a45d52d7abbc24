/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/content.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/mem.h"
#include "util/scoped.h"

#define STEP           (64 * 1024)
#define NAMES_MAX      65536 /* XATTR_LIST_MAX */
#define VALUE_MAX      65536 /* XATTR_SIZE_MAX */
#define CAPABILITY     "security.capability"
#define ATTRIBUTES_MAX 256 /* names looked at on one file */

int content_open(int dirfd, const char *name, struct stat *ret_st)
{
	scoped_fd int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, ret_st) < 0)
		return -errno;
	if (!S_ISREG(ret_st->st_mode))
		return -EBADF;
	return take_fd(&fd);
}

int content_hash(int fd, int64_t *budget, char ret_hex[DIGEST_HEX_SIZE])
{
	char buf[STEP]; /* not from the heap: memory of this size is got from the kernel each time */
	struct digest d;
	int64_t done = 0;

	digest_init(&d);
	for (;;) {
		ssize_t n = pread(fd, buf, STEP, done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		digest_add(&d, buf, (size_t)n);
		done += n;
		*budget -= n;
		if (done > CONTENT_HASH_MAX || *budget < 0)
			return -EFBIG;
	}
	digest_value_hex(&d, ret_hex);
	return 0;
}

/* Calls on_name for each attribute of a file, at most ATTRIBUTES_MAX, sorted by nothing. */
static int each_attribute(int fd, int (*on_name)(int fd, const char *name, void *data), void *data)
{
	scoped_mem char *names = NULL;
	ssize_t len = flistxattr(fd, NULL, 0);
	int n = 0;

	if (len < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	if (len == 0)
		return 0;
	names = mem_zero(1, NAMES_MAX + 1);
	len = flistxattr(fd, names, NAMES_MAX);
	if (len < 0)
		return -errno;
	for (char *name = names; name < names + len; name += strlen(name) + 1) {
		int r = ++n > ATTRIBUTES_MAX ? -E2BIG : on_name(fd, name, data);

		if (r < 0)
			return r;
	}
	return 0;
}

struct attribute_sum {
	unsigned char value[DIGEST_LEN];
	int n;
};

/* Adds the values up byte by byte, so that the order in which the kernel lists names does not matter. */
static int add_attribute(int fd, const char *name, void *data)
{
	struct attribute_sum *sum = data;
	scoped_mem char *value = NULL;
	unsigned char one[DIGEST_LEN];
	struct digest d;
	ssize_t len;

	/* The value of a capability names ids, which a mount maps: that there is one has to do. */
	if (strncmp(name, "user.", 5) != 0 && strcmp(name, CAPABILITY) != 0)
		return 0;
	value = mem_zero(1, VALUE_MAX);
	len = name[0] == 'u' ? fgetxattr(fd, name, value, VALUE_MAX) : 0;
	if (len < 0)
		return errno == ENODATA ? 0 : -errno;
	digest_init(&d);
	digest_add(&d, name, strlen(name) + 1);
	digest_add(&d, value, (size_t)len);
	digest_value(&d, one);
	for (size_t i = 0; i < DIGEST_LEN; i++)
		sum->value[i] = (unsigned char)(sum->value[i] + one[i]);
	sum->n++;
	return 0;
}

int content_attributes(int fd, char ret_hex[DIGEST_HEX_SIZE])
{
	struct attribute_sum sum = {0};
	int r = each_attribute(fd, add_attribute, &sum);

	if (r < 0)
		return r;
	ret_hex[0] = '\0';
	if (sum.n > 0)
		digest_hex(sum.value, ret_hex);
	return 0;
}

bool content_has_capabilities(int fd)
{
	return fgetxattr(fd, CAPABILITY, NULL, 0) > 0;
}

static int copy_attribute(int fd, const char *name, void *data)
{
	int to = *(int *)data;
	scoped_mem char *value = NULL;
	ssize_t len;

	if (strncmp(name, "user.", 5) != 0)
		return 0;
	value = mem_zero(1, VALUE_MAX);
	len = fgetxattr(fd, name, value, VALUE_MAX);
	if (len < 0)
		return errno == ENODATA ? 0 : -errno;
	if (fsetxattr(to, name, value, (size_t)len, 0) < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	return 0;
}

int content_copy_attributes(int from, int to)
{
	return each_attribute(from, copy_attribute, &to);
}

static int add_rights_name(int fd, const char *name, void *data)
{
	struct str *names = data;

	(void)fd;
	/* The label of a security module is the host's own business and is set anew there. */
	if (strcmp(name, "security.selinux") == 0)
		return 0;
	if (strncmp(name, "security.", 9) != 0 && strncmp(name, "system.posix_acl_", 17) != 0)
		return 0;
	if (names->len > 0)
		str_puts(names, ", ");
	str_puts(names, name);
	return 0;
}

int content_rights_attributes(int fd, struct str *ret_names)
{
	return each_attribute(fd, add_rights_name, ret_names);
}

static int copy_range(int from, int to, off_t start, off_t end)
{
	off_t in = start, out = start;

	while (in < end) {
		ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - in), 0);

		if (n > 0)
			continue;
		if (n == 0)
			return -EIO; /* it became shorter while we read: neither old nor new */
		if (errno == EINTR)
			continue;
		if (errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS)
			return -errno;
		break;
	}
	if (in < end && lseek(to, in, SEEK_SET) < 0)
		return -errno;
	while (in < end) {
		char buf[16384];
		size_t want = (size_t)(end - in) < sizeof(buf) ? (size_t)(end - in) : sizeof(buf);
		ssize_t n = pread(from, buf, want, in);
		int r;

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		r = fdio_write_all(to, buf, (size_t)n);
		if (r < 0)
			return r;
		in += n;
	}
	return 0;
}

int content_copy(int from, int to)
{
	struct stat st;
	off_t at = 0;

	if (fstat(from, &st) < 0)
		return -errno;
	if (ftruncate(to, st.st_size) < 0)
		return -errno;
	while (at < st.st_size) {
		off_t end, start = lseek(from, at, SEEK_DATA);
		int r;

		if (start < 0 && errno == ENXIO)
			return 0;
		if (start < 0)
			return -errno;
		end = lseek(from, start, SEEK_HOLE);
		if (end < 0)
			return -errno;
		r = copy_range(from, to, start, end < st.st_size ? end : st.st_size);
		if (r < 0)
			return r;
		at = end;
	}
	return 0;
}

int content_read_link(int dirfd, const char *name, char **ret_target)
{
	char target[PATH_MAX + 1];
	ssize_t n = readlinkat(dirfd, name, target, sizeof(target));

	if (n < 0)
		return -errno;
	if ((size_t)n >= sizeof(target))
		return -ENAMETOOLONG;
	*ret_target = mem_copy(target, (size_t)n);
	return 0;
}
