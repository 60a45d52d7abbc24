/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/snapshot.h"
#include "manifest/snapshot_take.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"

static char top[] = "/tmp/test_snapshot.XXXXXX";
static int top_fd;

/* ".", "a", "a/b", "c", "a/b/name" */
static void write_some(void)
{
	static const char text[] = "\0a\0b\0c\0name";
	struct snapshot_record records[] = {
		{.mode = S_IFDIR | 0755, .parent = SNAPSHOT_NONE},
		{.mode = S_IFDIR | 0755, .parent = 0, .name = 1},
		{.mode = S_IFREG | 0644, .parent = 0, .name = 5, .size = 7},
		{.mode = S_IFDIR | 0755, .parent = 1, .name = 3},
		{.mode = S_IFREG | 0644, .parent = 3, .name = 7},
	};
	struct snapshot_head times = {.started_ns = 1, .ended_ns = 2};
	struct str all = {.p = (char *)text, .len = sizeof(text)};

	assert_int_equal(snapshot_write(top_fd, "some", &times, records, 5, &all), 0);
}

static void test_finds_what_was_written(void **state)
{
	scoped(snapshot) struct snapshot *s = NULL;
	scoped_str struct str path = {0};

	write_some();
	assert_int_equal(snapshot_open(top_fd, "some", false, &s), 0);
	assert_int_equal(snapshot_find(s, 0, slice_of("a")), 1);
	assert_int_equal(snapshot_find(s, 0, slice_of("c")), 2);
	assert_int_equal(snapshot_find(s, 0, slice_of("b")), SNAPSHOT_NONE);
	assert_int_equal(snapshot_find(s, 1, slice_of("b")), 3);
	assert_int_equal(snapshot_find(s, 0, slice_of("")), SNAPSHOT_NONE);
	assert_int_equal(snapshot_find_path(s, slice_of("/a//b/name/")), 4);
	assert_int_equal(snapshot_find_path(s, slice_of("")), 0);
	assert_int_equal(snapshot_find_path(s, slice_of("a/c")), SNAPSHOT_NONE);
	assert_true(snapshot_path(s, 4, &path));
	assert_string_equal(path.p, "a/b/name");
	assert_int_equal(s->records[2].size, 7);
	assert_int_equal(s->records[0].first, 1);
	assert_int_equal(s->records[0].n_entries, 2);
}

/* A file with one thing wrong in it is none of ours. */
static void test_refuses_damage(void **state)
{
	scoped_str struct str whole = {0};
	struct snapshot_head *head;
	struct snapshot_record *records;
	struct snapshot found;
	size_t n_refused = 0;

	write_some();
	assert_int_equal(fdio_read_file(top_fd, "some", 1 << 20, &whole), 0);
	head = (struct snapshot_head *)whole.p;
	records = (struct snapshot_record *)(head + 1);
	assert_true(snapshot_check(whole.p, whole.len, &found));
#define WRONG(place, value) \
	do { \
		typeof(place) was = (place); \
		(place) = (value); \
		n_refused += !snapshot_check(whole.p, whole.len, &found); \
		(place) = was; \
	} while (0)
	WRONG(head->magic[0], 'x');
	WRONG(head->version, 2);
	WRONG(head->record_size, 8);
	WRONG(head->n_records, 0);
	WRONG(head->n_records, 6);
	WRONG(head->n_slots, 4);
	WRONG(head->n_slots, 17);
	WRONG(head->text_len, 0);
	WRONG(head->text_len, UINT64_MAX);
	WRONG(records[0].parent, 0);
	WRONG(records[1].parent, 5);
	WRONG(records[4].name, 12);
	WRONG(records[4].target, 12);
	WRONG(records[0].first, 6);
	WRONG(records[0].n_entries, UINT32_MAX);
	WRONG(found.slots[0], 5);
	WRONG(whole.p[whole.len - 1], 'x');
#undef WRONG
	assert_int_equal(n_refused, 17);
	for (size_t len = 0; len < whole.len; len++)
		assert_false(snapshot_check(whole.p, len, &found));
}

/* Parents that lead to each other end a walk, not the program. */
static void test_a_ring_of_parents_leads_nowhere(void **state)
{
	scoped_str struct str path = {0};

	scoped_str struct str whole = {0};
	struct snapshot_record *records;
	struct snapshot s;

	write_some();
	assert_int_equal(fdio_read_file(top_fd, "some", 1 << 20, &whole), 0);
	records = (struct snapshot_record *)((struct snapshot_head *)whole.p + 1);
	records[1].parent = 3;
	assert_true(snapshot_check(whole.p, whole.len, &s));
	assert_false(snapshot_path(&s, 4, &path));
}

static void test_opens_only_what_is_ours_alone(void **state)
{
	struct snapshot *s = NULL;

	write_some();
	assert_int_equal(fchmodat(top_fd, "some", 0622, 0), 0);
	assert_int_equal(snapshot_open(top_fd, "some", false, &s), -EPERM);
	assert_int_equal(fchmodat(top_fd, "some", 0600, 0), 0);
	assert_int_equal(symlinkat("some", top_fd, "link"), 0);
	assert_int_equal(snapshot_open(top_fd, "link", false, &s), -ELOOP);
	assert_int_equal(snapshot_open(top_fd, "none", false, &s), -ENOENT);
	assert_int_equal(unlinkat(top_fd, "link", 0), 0);
}

static void test_young_files_are_racy(void **state)
{
	int64_t now = 1000 * CLOCK_NS_PER_S + 500 * CLOCK_NS_PER_MS;

	assert_true(snapshot_is_racy(now, now));
	assert_true(snapshot_is_racy(now - 19 * CLOCK_NS_PER_MS, now));
	assert_false(snapshot_is_racy(now - 21 * CLOCK_NS_PER_MS, now));
	/* Whole seconds: a filesystem that keeps no more. */
	assert_true(snapshot_is_racy(999 * CLOCK_NS_PER_S, now));
	assert_false(snapshot_is_racy(998 * CLOCK_NS_PER_S, now));
}

/* A folder with files in folders, taken twice: the second time the hashes are the first one's. */
static void test_takes_hashes_of_files_that_are_the_same(void **state)
{
	scoped(snapshot) struct snapshot *first = NULL, *second = NULL;
	scoped_fd int root_fd = -1;
	struct snapshot_source source = {0};
	uint32_t same, other;

	assert_int_equal(mkdirat(top_fd, "tree", 0755), 0);
	assert_int_equal(mkdirat(top_fd, "tree/d", 0755), 0);
	assert_int_equal(fdio_replace(top_fd, "tree/d/same", "1", 1, 0644), 0);
	assert_int_equal(fdio_replace(top_fd, "tree/d/other", "1", 1, 0644), 0);
	usleep(30000);
	root_fd = openat(top_fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	source.root_fd = root_fd;
	assert_int_equal(snapshot_take(&source, top_fd, "first", NULL), 0);
	assert_int_equal(snapshot_open(top_fd, "first", true, &first), 0);
	same = snapshot_find_path(first, slice_of("d/same"));
	assert_int_equal(first->records[same].state, 0);
	snapshot_hash(first, root_fd, SNAPSHOT_REACH_RACY, NULL);
	assert_int_equal(first->records[same].state, 0);
	snapshot_hash(first, root_fd, SNAPSHOT_REACH_MOST, NULL);
	assert_int_equal(first->records[same].state, SNAPSHOT_HASHED);

	assert_int_equal(fdio_replace(top_fd, "tree/d/other", "2", 1, 0644), 0);
	usleep(30000);
	source.old = first;
	assert_int_equal(snapshot_take(&source, top_fd, "second", NULL), 0);
	assert_int_equal(snapshot_open(top_fd, "second", true, &second), 0);
	same = snapshot_find_path(second, slice_of("d/same"));
	other = snapshot_find_path(second, slice_of("d/other"));
	assert_int_equal(second->records[same].state, SNAPSHOT_HASHED);
	assert_int_equal(second->records[other].state, 0);
	/* One that is changed before it is read has no hash of before. */
	assert_int_equal(fdio_replace(top_fd, "tree/d/other", "3", 1, 0644), 0);
	snapshot_hash(second, root_fd, SNAPSHOT_REACH_FULL, NULL);
	assert_int_equal(second->records[other].state, SNAPSHOT_MISSED);
}

static int begin(void **state)
{
	if (!mkdtemp(top))
		return -1;
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return top_fd < 0 ? -1 : 0;
}

static int end(void **state)
{
	close(top_fd);
	return path_remove_all(AT_FDCWD, top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_what_was_written),
		cmocka_unit_test(test_refuses_damage),
		cmocka_unit_test(test_a_ring_of_parents_leads_nowhere),
		cmocka_unit_test(test_opens_only_what_is_ours_alone),
		cmocka_unit_test(test_young_files_are_racy),
		cmocka_unit_test(test_takes_hashes_of_files_that_are_the_same),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
