/* SPDX-License-Identifier: Apache-2.0 */
/* Whole outputs: a zstd frame each. A short one is held and compressed at its end, by a context that all short
 * ones share: a stream of its own costs 0.7 ms to set up, more than the command it belongs to. A longer one is
 * written as it comes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "record/record.h"
#include "record/record_files.h"
#include "util/fdio.h"
#include "util/mem.h"

#define ZSTD_LEVEL 3
/* A smaller window than the level's own 2 MiB: many outputs may be open at once. */
#define WINDOW_LOG 17
#define OUT_STEP   32768
#define HELD_MAX   16384
#define FOLDER     "outputs"

struct record_output {
	struct record *record;
	char *name; /* below the record */
	int fd;     /* -1 before the first byte */
	size_t cap, taken;
	struct str held;      /* all of it, while that is short */
	ZSTD_CStream *stream; /* once it is not */
	struct digest digest; /* of the file */
	uint64_t bytes;
	int failed;
};

int record_output_open(struct record *record, const char *exec_id, const char *suffix, size_t cap,
	struct record_output **ret_output, struct err *err)
{
	scoped(record_output) struct record_output *output = new0(struct record_output);

	output->fd = -1;
	if (!record_internal_is_name(exec_id) || !record_internal_is_name(suffix))
		return err_set(err, -EINVAL, "'%s.%s' is no name for an output", exec_id, suffix);
	output->name = mem_printf(FOLDER "/%s.%s.zst", exec_id, suffix);
	output->cap = cap;
	digest_init(&output->digest);
	output->record = record;
	*ret_output = take(&output);
	return 0;
}

/* At the first byte: many commands say nothing on one stream or both. */
static int make_file(struct record_output *output)
{
	int r = record_files_create(output->record, output->name);

	if (r < 0)
		return r;
	output->fd = r;
	return 0;
}

static int begin_stream(struct record_output *output)
{
	output->stream = ZSTD_createCStream();
	if (!output->stream)
		return -ENOMEM;
	if (ZSTD_isError(
		    ZSTD_CCtx_setParameter(output->stream, ZSTD_c_compressionLevel, ZSTD_LEVEL)) ||
		ZSTD_isError(ZSTD_CCtx_setParameter(output->stream, ZSTD_c_windowLog, WINDOW_LOG)))
		return -EINVAL;
	return 0;
}

/* Until all of the input is taken and, for the end, the frame is closed. */
static int compress(struct record_output *output, ZSTD_inBuffer *in, ZSTD_EndDirective how)
{
	char step[OUT_STEP];
	size_t left;

	do {
		ZSTD_outBuffer out = {.dst = step, .size = sizeof(step)};
		int r;

		left = ZSTD_compressStream2(output->stream, &out, in, how);
		if (ZSTD_isError(left))
			return -EIO;
		digest_add(&output->digest, step, out.pos);
		output->bytes += out.pos;
		r = fdio_write_all(output->fd, step, out.pos);
		if (r < 0)
			return r;
	} while (how == ZSTD_e_end ? left > 0 : in->pos < in->size);
	return 0;
}

static int write_part(struct record_output *output, const void *p, size_t len)
{
	ZSTD_inBuffer in = {.src = p, .size = len};

	return len ? compress(output, &in, ZSTD_e_continue) : 0;
}

/* It is no short one any more: what was held goes first. */
static int start_stream(struct record_output *output)
{
	int r = make_file(output);

	if (r == 0)
		r = begin_stream(output);
	if (r == 0)
		r = write_part(output, output->held.p, output->held.len);
	str_done(&output->held);
	return r;
}

int record_output_write(struct record_output *output, const void *p, size_t len)
{
	size_t room = output->cap - output->taken;

	if (len > room)
		len = room;
	if (output->failed || len == 0)
		return output->failed;
	output->taken += len;
	if (output->taken <= HELD_MAX) {
		str_add(&output->held, p, len);
		return 0;
	}
	if (!output->stream)
		output->failed = start_stream(output);
	if (output->failed == 0)
		output->failed = write_part(output, p, len);
	return output->failed;
}

/* The whole frame at once; the context is the record's, so this is for its own thread. */
static int write_held(struct record_output *output)
{
	char frame[ZSTD_COMPRESSBOUND(HELD_MAX)];
	struct record *record = output->record;
	size_t n;
	int r;

	if (!record->short_outputs)
		record->short_outputs = ZSTD_createCCtx();
	if (!record->short_outputs)
		return -ENOMEM;
	n = ZSTD_compressCCtx(record->short_outputs, frame, sizeof(frame), output->held.p,
		output->held.len, ZSTD_LEVEL);
	if (ZSTD_isError(n))
		return -EIO;
	r = make_file(output);
	if (r == 0)
		r = fdio_write_all(output->fd, frame, n);
	digest_add(&output->digest, frame, n);
	output->bytes = n;
	return r;
}

static void end_frame(struct record_output *output)
{
	ZSTD_inBuffer in = {0};

	/* A frame that cannot be ended still reads as far as it goes. */
	if (output->stream && output->failed == 0)
		(void)compress(output, &in, ZSTD_e_end);
	else if (output->held.len)
		(void)write_held(output);
	if (output->fd >= 0)
		record_files_enter(output->record, output->name, &output->digest, output->bytes);
}

void record_output_free(struct record_output *output)
{
	if (!output)
		return;
	if (output->record)
		end_frame(output);
	ZSTD_freeCStream(output->stream);
	scoped_close(&output->fd);
	str_done(&output->held);
	free(output->name);
	free(output);
}
