/* SPDX-License-Identifier: Apache-2.0 */
/* A record that somebody else made: log, trace, seal and meta, a NUL between them. It is verified, read, mended,
 * and read again. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/reader.h"
#include "record/record.h"
#include "record/verify.h"
#include "util/fdio.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"log.jsonl", "trace-00001.jsonl", "seal.json", "meta.json"};
static char dir[64];

static void remove_files(void)
{
	static const char *const made[] = {"torn.bin", "reserve", "seal.json.new"};
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlinkat(fd, names[i], 0);
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		(void)unlinkat(fd, made[i], 0);
	close(fd);
}

static void remove_all(void)
{
	remove_files();
	(void)rmdir(dir);
}

static void write_files(const char *data, size_t size)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && size > 0; i++) {
		const char *stop = memchr(data, '\0', size);
		size_t len = stop ? (size_t)(stop - data) : size;
		char path[128];
		int fd;

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		if (fd < 0 || fdio_write_all(fd, data, len) < 0)
			abort();
		close(fd);
		data += stop ? len + 1 : len;
		size -= stop ? len + 1 : len;
	}
}

static void read_all(void)
{
	struct verify_options options = {0};
	struct verify_result result = {0};
	scoped(reader) struct reader *reader = NULL;
	const struct event *ev;
	struct err err;

	if (verify_record(dir, &options, &result, &err) == 0)
		verify_result_done(&result);
	if (reader_open(dir, &reader, &err) < 0)
		return;
	while (reader_next(reader, &ev, &err) > 0)
		;
	(void)reader_is_cut(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct event ev = {.kind = EVENT_SANDBOX_ERROR};
	struct record *record;
	struct err err;

	if (!dir[0]) {
		snprintf(dir, sizeof(dir), "/dev/shm/fuzz_reader.%d", (int)getpid());
		if (mkdir(dir, 0700) < 0)
			abort();
		atexit(remove_all);
	}
	write_files((const char *)data, size);
	read_all();
	if (record_reopen(dir, &record, &err) == 0) {
		(void)record_emit(record, &ev, NULL);
		record_free(record);
		read_all();
	}
	remove_files();
	return 0;
}
