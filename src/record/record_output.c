/* SPDX-License-Identifier: Apache-2.0 */
/* Whole outputs: a zstd frame each, written as it comes. */
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
#define FOLDER     "outputs"

struct record_output {
	struct record *record;
	char *name; /* below the record */
	int fd;     /* -1 before the first byte */
	size_t cap, taken;
	ZSTD_CStream *stream;
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

int record_output_write(struct record_output *output, const void *p, size_t len)
{
	size_t room = output->cap - output->taken;
	ZSTD_inBuffer in = {.src = p, .size = len < room ? len : room};

	if (output->failed || in.size == 0)
		return output->failed;
	if (output->fd < 0)
		output->failed = make_file(output);
	if (output->failed == 0 && !output->stream)
		output->failed = begin_stream(output);
	output->taken += in.size;
	if (output->failed == 0)
		output->failed = compress(output, &in, ZSTD_e_continue);
	return output->failed;
}

static void end_frame(struct record_output *output)
{
	ZSTD_inBuffer in = {0};

	if (output->failed == 0 && output->stream)
		(void)compress(
			output, &in, ZSTD_e_end); /* a frame cut short still reads up to there */
	record_files_enter(output->record, output->name, &output->digest, output->bytes);
}

void record_output_free(struct record_output *output)
{
	if (!output)
		return;
	if (output->fd >= 0)
		end_frame(output);
	ZSTD_freeCStream(output->stream);
	scoped_close(&output->fd);
	free(output->name);
	free(output);
}
