/* SPDX-License-Identifier: Apache-2.0 */
#include "image/inflate.h"

#include <archive.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "util/fdio.h"

#define BLOCK_LEN (128u << 10)

static const int allowed[] = {
	__NR_read,
	__NR_write,
	__NR_close,
	__NR_lseek,
	__NR_fstat,
	__NR_newfstatat,
	__NR_brk,
	__NR_munmap,
	__NR_mremap,
	__NR_madvise,
	__NR_futex,
	__NR_fcntl,
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
};

const struct callfilter inflate_filter = {
	.allowed = allowed,
	.n_allowed = sizeof(allowed) / sizeof(allowed[0]),
	.narrowed = narrowed,
	.n_narrowed = sizeof(narrowed) / sizeof(narrowed[0]),
};

bool inflate_is_packed(const unsigned char *head, size_t len)
{
	static const struct {
		const char *bytes;
		size_t len;
	} magics[] = {{"\x1f\x8b", 2}, {"\x28\xb5\x2f\xfd", 4},
		{"\xfd"
		 "7zXZ\0",
			6},
		{"BZh", 3}};

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (len >= magics[i].len && memcmp(head, magics[i].bytes, magics[i].len) == 0)
			return true;
	return false;
}

static int say(struct archive *a, struct err *err)
{
	const char *why = archive_error_string(a);

	return err_set(err, -EBADMSG, "its compression cannot be read: %.200s",
		why ? why : "it is damaged");
}

static int copy(struct archive *a, struct err *err)
{
	const void *block;
	size_t len;
	la_int64_t at;
	int r;

	for (;;) {
		r = archive_read_data_block(a, &block, &len, &at);
		if (r == ARCHIVE_EOF)
			return 0;
		if (r != ARCHIVE_OK)
			return say(a, err);
		r = fdio_write_all(1, block, len);
		if (r < 0)
			return err_set(err, r, "hand the bytes on: %m");
	}
}

int inflate_run(void *unused, struct str *report, struct err *err)
{
	struct archive *a = archive_read_new();
	struct archive_entry *entry;
	int r;

	if (!a)
		return err_set(err, -ENOMEM, "make a reader: %m");
	(void)archive_read_support_filter_gzip(a);
	(void)archive_read_support_filter_zstd(a);
	(void)archive_read_support_filter_xz(a);
	(void)archive_read_support_filter_bzip2(a);
	(void)archive_read_support_format_raw(a);
	(void)archive_read_support_format_empty(a);
	r = archive_read_open_fd(a, 0, BLOCK_LEN);
	if (r == ARCHIVE_OK)
		r = archive_read_next_header(a, &entry);
	if (r == ARCHIVE_EOF)
		r = 0;
	else if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		r = say(a, err);
	else
		r = copy(a, err);
	(void)archive_read_free(a);
	return r;
}
