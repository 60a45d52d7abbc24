/* SPDX-License-Identifier: Apache-2.0 */
#include "image/layer_make.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/inflate.h"
#include "image/jail.h"
#include "image/progress.h"
#include "sandbox/kmount.h"
#include "util/mem.h"
#include "util/scoped.h"

#define PIECE_LEN  (256u << 10)
#define PIPE_LEN   (1 << 20) /* where the kernel gives that much */
#define TAR_BLOCK  512
#define HEADS_LEN  4096 /* of an entry, with its padding */
#define REPORT_MAX (64u << 20)

struct flow {
	const struct layer_make *make;
	struct jail_child inflater, unpacker;
	int from_fd; /* the plain tar: of the inflater, or the file itself */
	int to_fd;   /* to the unpacker */
	uint64_t bytes, file_len;
	struct digest digest;
};

void layer_make_name(const char *diff, char ret_name[LAYER_MAKE_NAME_SIZE])
{
	(void)snprintf(ret_name, LAYER_MAKE_NAME_SIZE, "sha256-%s", diff);
}

static int open_pipe(int pair[2], struct err *err)
{
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_set(err, -errno, "make a pipe: %m");
	(void)fcntl(pair[0], F_SETPIPE_SZ, PIPE_LEN); /* the usual length does too */
	return 0;
}

static int is_packed(int fd, struct err *err)
{
	unsigned char head[INFLATE_MAGIC_LEN];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	if (n < 0)
		return err_set(err, -errno, "read the archive: %m");
	return inflate_is_packed(head, (size_t)n);
}

static int start_inflater(struct flow *f, struct err *err)
{
	struct jail jail = {.what = "read the layer",
		.base = f->make->store->base,
		.root_fd = -1,
		.in_fd = f->make->file_fd,
		.filter = &inflate_filter,
		.work = inflate_run};
	int pair[2], r = is_packed(f->make->file_fd, err);

	if (r <= 0) {
		f->from_fd = r < 0 ? -1 : fcntl(f->make->file_fd, F_DUPFD_CLOEXEC, 0);
		return r < 0 || f->from_fd >= 0 ? r : err_set(err, -errno, "dup: %m");
	}
	r = open_pipe(pair, err);
	if (r < 0)
		return r;
	jail.out_fd = pair[1];
	r = jail_start(&jail, &f->inflater, err);
	(void)close(pair[1]);
	f->from_fd = pair[0];
	return r;
}

static int start_unpacker(struct flow *f, const struct layer_temp *temp, struct err *err)
{
	scoped_fd int root_fd =
		kmount_clone(temp->path, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, -1, err);
	struct jail jail = {.what = "unpack the layer",
		.base = f->make->store->base,
		.root_fd = root_fd,
		.may_give_away = true,
		.out_fd = -1,
		.file_max = f->make->limits->bytes,
		.filter = &unpack_filter,
		.work = unpack_run,
		.ctx = (void *)f->make->limits};
	int pair[2], r;

	if (root_fd < 0)
		return root_fd;
	r = open_pipe(pair, err);
	if (r < 0)
		return r;
	jail.in_fd = pair[0];
	r = jail_start(&jail, &f->unpacker, err);
	(void)close(pair[0]);
	f->to_fd = pair[1];
	return r;
}

static int stopped(struct err *err)
{
	return err_set(err, -EINTR, "stopped by a signal");
}

/* -EPIPE where the unpacker has gone: its report says why. */
static int pass_on(struct flow *f, const char *p, size_t len, struct err *err)
{
	while (len > 0) {
		ssize_t n = write(f->to_fd, p, len);

		if (progress_is_stopped())
			return stopped(err);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int layer_make_check_len(const struct unpack_limits *limits, uint64_t len, struct err *err)
{
	uint64_t most;

	if (__builtin_mul_overflow(limits->entries, HEADS_LEN, &most) ||
		__builtin_add_overflow(limits->bytes, most, &most) || len <= most)
		return 0;
	return err_set(err, -EFBIG,
		"it takes more than %llu bytes without its compression: where that is meant, raise "
		"CLOCHE_IMAGE_MAX",
		(unsigned long long)limits->bytes);
}

/* umoci and others leave out zeros at the end: those that fill the last block, and the two blocks of the end mark. They
 * are no part of the digest. */
static int pass_end_on(struct flow *f, struct err *err)
{
	static const char zeros[3 * TAR_BLOCK];

	return pass_on(
		f, zeros, 2 * TAR_BLOCK + (TAR_BLOCK - f->bytes % TAR_BLOCK) % TAR_BLOCK, err);
}

static int pump(struct flow *f, struct err *err)
{
	scoped_mem char *piece = mem_zero(1, PIECE_LEN);
	int r = 0;

	while (r == 0) {
		ssize_t n = read(f->from_fd, piece, PIECE_LEN);
		off_t at;

		if (progress_is_stopped())
			return stopped(err);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, -errno, "read it: %m");
		if (n == 0)
			return f->make->is_known_whole ? pass_end_on(f, err) : 0;
		at = lseek(f->make->file_fd, 0, SEEK_CUR); /* the inflater's too */
		digest_add(&f->digest, piece, (size_t)n);
		f->bytes += (uint64_t)n;
		progress_show(f->make->label, at < 0 ? 0 : (uint64_t)at, f->file_len);
		r = layer_make_check_len(f->make->limits, f->bytes, err);
		if (r == 0)
			r = pass_on(f, piece, (size_t)n, err);
	}
	return r;
}

/* Both children's ends, in the order in which one explains the other: where the unpacker gave up, why; where what came to
 * it was cut, why that was. */
static int conclude(struct flow *f, int pumped, struct str *ret_report, struct err *err)
{
	scoped_str struct str empty = {0};
	struct err why = {0};
	int r, inflated;

	scoped_close(&f->to_fd);
	f->to_fd = -1;
	if (pumped < 0 && pumped != -EPIPE)
		return pumped;
	if (pumped == -EPIPE) {
		r = jail_finish(&f->unpacker, REPORT_MAX, ret_report, err);
		return r < 0 ? r : err_set(err, -EIO, "the child that unpacks ended early");
	}
	inflated = f->inflater.pid ? jail_finish(&f->inflater, REPORT_MAX, &empty, &why) : 0;
	if (inflated < 0)
		return err_set(err, inflated, "%s", why.msg);
	return jail_finish(&f->unpacker, REPORT_MAX, ret_report, err);
}

static void flow_done(struct flow *f)
{
	jail_end(&f->inflater);
	jail_end(&f->unpacker);
	scoped_close(&f->from_fd);
	scoped_close(&f->to_fd);
}

int layer_make_fill(const struct layer_make *make, struct layer_temp *temp,
	char ret_digest[DIGEST_HEX_SIZE], struct whiteout_counts *ret_counts, struct err *err)
{
	struct flow f = {.make = make,
		.inflater = JAIL_NO_CHILD,
		.unpacker = JAIL_NO_CHILD,
		.from_fd = -1,
		.to_fd = -1};
	scoped_str struct str report = {0};
	struct stat st;
	int r;

	if (fstat(make->file_fd, &st) < 0 || lseek(make->file_fd, 0, SEEK_SET) < 0)
		return err_set(err, -errno, "read the archive: %m");
	f.file_len = (uint64_t)st.st_size;
	digest_init(&f.digest);
	r = start_unpacker(&f, temp, err);
	if (r == 0)
		r = start_inflater(&f, err);
	if (r >= 0)
		r = conclude(&f, pump(&f, err), &report, err);
	if (r == 0)
		r = whiteout_put_all(
			temp->fs_fd, make->store->base, str_slice(&report), ret_counts, err);
	digest_value_hex(&f.digest, ret_digest);
	temp->bytes = f.bytes;
	flow_done(&f);
	return r;
}

static void add_counts(struct whiteout_counts *sum, const struct whiteout_counts *counts)
{
	sum->n_devices += counts->n_devices;
	sum->n_xattrs += counts->n_xattrs;
	sum->n_entries += counts->n_entries;
}

int layer_make_named(const struct layer_make *make, const char *diff,
	struct whiteout_counts *ret_counts, struct err *err)
{
	struct layer_make whole = *make;
	struct layer_temp temp = LAYER_TEMP_NONE;
	struct whiteout_counts counts = {0};
	char digest[DIGEST_HEX_SIZE], name[LAYER_MAKE_NAME_SIZE];
	int r;

	layer_make_name(diff, name);
	r = layer_store_begin(make->store, name, &temp, err);
	if (r <= 0)
		return r;
	whole.is_known_whole = true;
	r = layer_make_fill(&whole, &temp, digest, &counts, err);
	if (r == 0 && strcmp(digest, diff) != 0)
		r = err_set(err, -EBADMSG,
			"it is damaged or was replaced: its files have the digest sha256:%.12s..., "
			"its "
			"image wants sha256:%.12s...",
			digest, diff);
	if (r == 0)
		r = layer_store_finish(&temp, name, err);
	layer_store_drop(&temp);
	if (r == 0)
		add_counts(ret_counts, &counts);
	return r;
}
