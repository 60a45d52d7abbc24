/* SPDX-License-Identifier: Apache-2.0 */
#include "image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image/parcel.h"
#include "image/unpack_internal.h"
#include "util/fdio.h"
#include "util/scoped.h"

#define BLOCK_LEN  (128u << 10)
#define WHITEOUT   ".wh."
#define OPAQUE     ".wh..wh..opq"
#define OWN_MARK   ".wh..wh." /* others that begin so are aufs's own and mean nothing here */
#define REPORT_MAX (48u << 20)

static const int allowed[] = {
	__NR_read,
	__NR_write,
	__NR_pwrite64,
	__NR_close,
	__NR_lseek,
	__NR_fcntl,
	__NR_fstat,
	__NR_newfstatat,
	__NR_openat,
	__NR_openat2,
	__NR_mkdirat,
	__NR_symlinkat,
	__NR_linkat,
	__NR_unlinkat,
#ifdef __NR_renameat
	__NR_renameat,
#endif
	__NR_renameat2,
	__NR_getdents64,
	__NR_ftruncate,
	__NR_fchown,
	__NR_fchownat,
	__NR_fchmod,
	__NR_fsetxattr,
	__NR_utimensat,
#ifdef __NR_unlink
	__NR_unlink,
	__NR_rmdir,
#endif
	__NR_brk,
	__NR_munmap,
	__NR_mremap,
	__NR_madvise,
	__NR_futex,
	__NR_clock_gettime,
	__NR_gettimeofday,
	__NR_getrandom,
	__NR_rt_sigprocmask,
	__NR_rt_sigreturn,
	__NR_sigaltstack,
	__NR_getpid,
	__NR_gettid,
	__NR_tgkill, /* abort(): there is nobody else in its namespace */
	__NR_poll,
	__NR_exit,
	__NR_exit_group,
};

static const struct callfilter_narrow narrowed[] = {
	{__NR_mmap, 2, PROT_EXEC, {0}, 1},
	{__NR_mprotect, 2, PROT_EXEC, {0}, 1},
	{__NR_mknodat, 2, S_IFMT, {S_IFIFO}, 1},
};

const struct callfilter unpack_filter = {
	.allowed = allowed,
	.n_allowed = sizeof(allowed) / sizeof(allowed[0]),
	.narrowed = narrowed,
	.n_narrowed = sizeof(narrowed) / sizeof(narrowed[0]),
};

static int tell(
	struct unpack *u, enum parcel_type type, const char *text, size_t len, struct err *err)
{
	if (u->report->len + len > REPORT_MAX)
		return err_set(err, -E2BIG, "it hides too much");
	parcel_add(u->report, type, (struct slice){.p = text, .len = len});
	return 0;
}

static int note_whiteout(struct unpack *u, struct unpack_path *path, struct err *err)
{
	const char *name = path->name + strlen(WHITEOUT);
	size_t len = strlen(name), above = (size_t)(path->name - path->text);
	int r;

	if (strncmp(path->name, OWN_MARK, strlen(OWN_MARK)) == 0 && strcmp(path->name, OPAQUE) != 0)
		return 0;
	r = unpack_place_plain(&u->place, path);
	if (r < 0)
		return err_set(err, r, "it is a mark below a link or a file: %m");
	if (strcmp(path->name, OPAQUE) == 0)
		return tell(u, PARCEL_OPAQUE, path->text, above ? above - 1 : 0, err);
	if (len == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(err, -EBADMSG, "it is a mark that hides nothing");
	memmove(path->name, name, len + 1);
	return tell(u, PARCEL_WHITEOUT, path->text, above + len, err);
}

/* Folders that are made for what lies in them count: a path has room for thousands. */
static int check_entries(const struct unpack *u, struct err *err)
{
	if (u->n_entries + u->place.n_made <= u->limits->entries)
		return 0;
	return err_set(err, -E2BIG,
		"it has more than %llu entries: where that is meant, raise "
		"CLOCHE_IMAGE_MAX_ENTRIES",
		(unsigned long long)u->limits->entries);
}

static int make_one(struct unpack *u, struct archive_entry *entry, struct err *err)
{
	const char *given = archive_entry_pathname(entry);
	struct unpack_path path;
	int r;

	if (!given)
		return err_set(err, -EBADMSG, "a name in it cannot be read");
	u->n_entries++;
	r = check_entries(u, err);
	if (r < 0)
		return r;
	r = unpack_path_set(&path, given, err);
	if (r == 0 && path.len && strncmp(path.name, WHITEOUT, strlen(WHITEOUT)) == 0)
		r = note_whiteout(u, &path, err);
	else if (r == 0)
		r = unpack_entry_make(u, entry, &path, err);
	return r < 0 ? err_wrap(err, r, "'%.200s'", given) : 0;
}

static int say_no_tar(struct unpack *u, struct err *err)
{
	const char *why = archive_error_string(u->archive);

	return err_set(err, -EBADMSG, "it is no tar, or a damaged one: %.200s",
		why ? why : "it cannot be read");
}

static int make_all(struct unpack *u, struct err *err)
{
	struct archive_entry *entry;
	int r;

	for (;;) {
		r = archive_read_next_header(u->archive, &entry);
		if (r == ARCHIVE_EOF)
			return 0;
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return say_no_tar(u, err);
		r = make_one(u, entry, err);
		if (r < 0)
			return r;
	}
}

/* As they came, so of a folder that came twice the last one holds. One that went meanwhile is passed over. */
static void set_times(struct unpack *u)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};

	for (size_t i = 0; i < u->n_late; i++) {
		const struct timespec times[] = {u->late[i].time, u->late[i].time};
		scoped_fd int fd = (int)syscall(
			SYS_openat2, u->place.root, u->late[i].path, &how, sizeof(how));

		if (fd >= 0)
			(void)futimens(fd, times);
	}
}

/* What lies behind the end of the tar belongs to its digest: the parent wants to be rid of it. */
static int drain(struct err *err)
{
	static char rest[BLOCK_LEN];
	ssize_t n;

	do {
		n = read(0, rest, sizeof(rest));
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? err_set(err, -errno, "read to the end: %m") : 0;
}

static void tell_counts(struct unpack *u)
{
	parcel_add_count(u->report, PARCEL_DEVICES, u->n_devices);
	parcel_add_count(u->report, PARCEL_XATTRS, u->n_xattrs);
	parcel_add_count(u->report, PARCEL_ENTRIES, u->n_entries);
	parcel_add_count(u->report, PARCEL_STRANGERS, u->n_strangers);
}

static int read_archive(struct unpack *u, struct err *err)
{
	int r;

	(void)archive_read_support_format_tar(u->archive);
	(void)archive_read_support_format_empty(u->archive);
	r = archive_read_open_fd(u->archive, 0, BLOCK_LEN);
	r = r == ARCHIVE_OK ? make_all(u, err) : say_no_tar(u, err);
	return r < 0 ? r : drain(err);
}

int unpack_run(void *ctx, struct str *report, struct err *err)
{
	struct unpack u = {.limits = ctx,
		.archive = archive_read_new(),
		.place = {.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), .folder = -1},
		.report = report};
	int r;

	if (!u.archive || u.place.root < 0)
		return err_set(err, -ENOMEM, "make a reader: %m");
	r = read_archive(&u, err);
	if (r == 0) {
		set_times(&u);
		tell_counts(&u);
	}
	(void)archive_read_free(u.archive); /* the rest goes with the process */
	return r;
}
