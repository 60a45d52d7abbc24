/* SPDX-License-Identifier: Apache-2.0 */
/* A reader that begins in the middle, or is after one exec alone, gives what one from the start gives, less what it passes
 * over. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/reader.h"
#include "util/mem.h"
#include "util/path.h"

#define ID       "sb_0123456789abcdef"
#define N_EVENTS 4000
#define N_EXECS  7 /* in turns */
#define PAD_MAX  3000
#define PAD_HUGE 200000 /* more than what is read at once between two looks */

struct place {
	char dir[64];
};

static int set_up(void **state)
{
	struct place *place = new0(struct place);

	snprintf(place->dir, sizeof(place->dir), "/tmp/cloche-skip-XXXXXX");
	*state = place;
	return mkdtemp(place->dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	path_remove_all(AT_FDCWD, place->dir);
	free(place);
	return 0;
}

static void add_event(FILE *file, unsigned seq, const char *kind, size_t pad)
{
	scoped_mem char *path = mem_zero(1, pad + 1);

	memset(path, 'x', pad);
	fprintf(file,
		"{\"v\":1,\"sandbox\":\"" ID "\",\"seq\":%u,\"guest_ns\":1,\"wall_ms\":2,"
		"\"kind\":\"%s\",\"exec\":\"ex_%u\",\"path\":\"/%s\"}\n",
		seq, kind, seq % N_EXECS, path);
}

static FILE *open_journal(const struct place *place, const char *name)
{
	scoped_mem char *path = mem_printf("%s/%s", place->dir, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fprintf(file, "{\"journal\":\"%s\",\"v\":1,\"sandbox\":\"" ID "\"}\n", name);
	return file;
}

static FILE *next_segment(const struct place *place, FILE *file, unsigned n)
{
	char name[32];

	if (file)
		fclose(file);
	snprintf(name, sizeof(name), "trace-%05u.jsonl", n);
	return open_journal(place, name);
}

static size_t pad_of(unsigned short rng[3])
{
	return nrand48(rng) % 500 == 0 ? PAD_HUGE : (size_t)nrand48(rng) % PAD_MAX;
}

/* A log, and a trace in n_segments files; hash lines between. */
static void write_record(const struct place *place, unsigned n_segments, unsigned short rng[3])
{
	FILE *log = open_journal(place, "log.jsonl"), *trace = next_segment(place, NULL, 1);
	unsigned segment = 1;

	for (unsigned seq = 1; seq <= N_EVENTS; seq++) {
		if (segment < n_segments && seq > segment * N_EVENTS / n_segments)
			trace = next_segment(place, trace, ++segment);
		if (nrand48(rng) % 6 == 0)
			add_event(log, seq, "exec.late", 0);
		else
			add_event(trace, seq, "file.delete", pad_of(rng));
		if (nrand48(rng) % 20 == 0)
			fprintf(trace, "{\"h\":\"%064d\",\"batch\":1,\"n\":2,\"seq\":%u}\n", 0,
				seq);
	}
	fclose(log);
	fclose(trace);
}

static void check_from(const struct place *place, unsigned seq)
{
	scoped(reader) struct reader *reader = NULL;
	const struct event *ev;
	struct err err = {0};
	uint64_t expected = seq > 0 ? seq : 1;

	assert_int_equal(reader_open(place->dir, &reader, &err), 0);
	assert_int_equal(reader_skip_to(reader, seq, &err), 0);
	while (reader_next(reader, &ev, &err) == 1)
		assert_int_equal(ev->seq, expected++);
	assert_int_equal(expected, seq > N_EVENTS ? seq : N_EVENTS + 1);
}

static void test_from_everywhere(void **state)
{
	unsigned short rng[3] = {1, 2, 3};

	for (unsigned n_segments = 1; n_segments <= 5; n_segments += 2) {
		write_record(*state, n_segments, rng);
		for (unsigned i = 0; i < 12; i++)
			check_from(*state, (unsigned)nrand48(rng) % N_EVENTS);
		check_from(*state, 0);
		check_from(*state, 1);
		check_from(*state, N_EVENTS);
		check_from(*state, N_EVENTS + 1);
		check_from(*state, N_EVENTS + 1000);
		for (unsigned i = 1; i < n_segments; i++) {
			check_from(*state, i * N_EVENTS / n_segments);
			check_from(*state, i * N_EVENTS / n_segments + 1);
		}
	}
}

static void test_one_exec(void **state)
{
	const struct place *place = *state;
	unsigned short rng[3] = {4, 5, 6};

	write_record(place, 3, rng);
	for (unsigned from = 0; from < N_EVENTS; from += N_EVENTS / 4) {
		scoped(reader) struct reader *reader = NULL;
		const struct event *ev;
		struct err err = {0};
		uint64_t expected = from + N_EXECS - from % N_EXECS + 5;

		assert_int_equal(reader_open(place->dir, &reader, &err), 0);
		if (from > 0)
			assert_int_equal(reader_skip_to(reader, expected, &err), 0);
		else
			expected = 5;
		reader_only(reader, slice_of("ex_5"));
		for (; reader_next(reader, &ev, &err) == 1; expected += N_EXECS)
			assert_int_equal(ev->seq, expected);
		assert_true(expected > N_EVENTS);
	}
}

/* Numbers that go back, lines without one, a file of nothing: it ends, and gives nothing from before. */
static void test_hostile(void **state)
{
	const struct place *place = *state;
	scoped(reader) struct reader *reader = NULL;
	FILE *file = next_segment(place, NULL, 1);
	const struct event *ev;
	struct err err = {0};
	int r;

	for (unsigned i = 0; i < 2000; i++) {
		add_event(file, 1 + i * 7919 % 2000, "file.delete", 200);
		fprintf(file, "nonsense \"seq\":%u,\n", i);
	}
	fclose(file);
	fclose(next_segment(place, NULL, 2));
	fclose(open_journal(place, "log.jsonl"));
	assert_int_equal(reader_open(place->dir, &reader, &err), 0);
	assert_int_equal(reader_skip_to(reader, 1000, &err), 0);
	while ((r = reader_next(reader, &ev, &err)) == 1)
		assert_true(ev->seq >= 1000);
	assert_int_equal(r, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_from_everywhere, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_exec, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
