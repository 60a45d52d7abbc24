/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/mem.h"

#define MAGIC      "cloche-s"
#define VERSION    1
#define DEPTH_MAX  100000 /* parents above a record: more are a ring */
#define NEW_SUFFIX ".new"

_Static_assert(sizeof(struct snapshot_record) == 152, "records lie in files");
_Static_assert(sizeof(struct snapshot_head) == 56, "and so does this");

/* ---- reading ---- */

static bool is_head_good(const struct snapshot_head *head, size_t len)
{
	uint64_t want = sizeof(*head);

	if (memcmp(head->magic, MAGIC, sizeof(head->magic)) != 0 || head->version != VERSION ||
		head->record_size != sizeof(struct snapshot_record))
		return false;
	if (head->n_records == 0 || head->n_records > SNAPSHOT_RECORDS_MAX || head->text_len == 0 ||
		head->text_len > UINT32_MAX || head->n_slots <= head->n_records ||
		(head->n_slots & (head->n_slots - 1)) != 0)
		return false;
	want += (uint64_t)head->n_records * sizeof(struct snapshot_record);
	want += (uint64_t)head->n_slots * sizeof(uint32_t) + head->text_len;
	return want == len;
}

/* Some slot is free, or a search for what is not there would not end. */
static bool are_slots_good(const struct snapshot *s)
{
	uint32_t n_free = 0;

	for (uint32_t i = 0; i < s->head->n_slots; i++) {
		if (s->slots[i] == SNAPSHOT_NONE)
			n_free++;
		else if (s->slots[i] >= s->head->n_records)
			return false;
	}
	return n_free > 0;
}

static bool are_records_good(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->head->n_records; i++) {
		const struct snapshot_record *r = &s->records[i];

		if (r->name >= s->head->text_len || r->target >= s->head->text_len)
			return false;
		if (r->first > s->head->n_records || r->n_entries > s->head->n_records - r->first)
			return false;
		if (i == 0 ? r->parent != SNAPSHOT_NONE : r->parent >= s->head->n_records)
			return false;
	}
	return true;
}

bool snapshot_check(void *bytes, size_t len, struct snapshot *ret)
{
	struct snapshot s = {.head = bytes, .len = len, .fd = -1};

	if (len < sizeof(*s.head) || !is_head_good(s.head, len))
		return false;
	s.records = (struct snapshot_record *)(s.head + 1);
	s.slots = (uint32_t *)(s.records + s.head->n_records);
	s.text = (const char *)(s.slots + s.head->n_slots);
	if (s.text[s.head->text_len - 1] != '\0' || !are_slots_good(&s) || !are_records_good(&s))
		return false;
	*ret = s;
	return true;
}

int snapshot_open(int dirfd, const char *name, bool writable, struct snapshot **ret_snapshot)
{
	scoped_fd int fd =
		openat(dirfd, name, (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);
	struct snapshot found;
	struct stat st;
	void *bytes;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* Whoever may write it chooses what is said to be unchanged. */
	if (!S_ISREG(st.st_mode) || (st.st_uid != 0 && st.st_uid != geteuid()) ||
		(st.st_mode & 022))
		return -EPERM;
	if (st.st_size < (off_t)sizeof(struct snapshot_head))
		return -EBADMSG;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	if (!snapshot_check(bytes, (size_t)st.st_size, &found)) {
		munmap(bytes, (size_t)st.st_size);
		return -EBADMSG;
	}
	found.fd = writable ? take_fd(&fd) : -1;
	*ret_snapshot = mem_copy(&found, sizeof(found));
	return 0;
}

void snapshot_free(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	munmap(snapshot->head, snapshot->len);
	scoped_close(&snapshot->fd);
	free(snapshot);
}

/* Names come from inside the sandbox: the seed keeps it from aiming at one slot. */
static uint64_t hash_of(uint64_t seed, uint32_t parent, struct slice name)
{
	uint64_t h = seed ^ parent, word;

	for (size_t i = 0; i < name.len; i += sizeof(word)) {
		size_t n = name.len - i < sizeof(word) ? name.len - i : sizeof(word);

		word = 0;
		memcpy(&word, name.p + i, n);
		h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 29;
	}
	h *= 0xbf58476d1ce4e5b9ULL;
	return h ^ h >> 32;
}

uint32_t snapshot_find(const struct snapshot *s, uint32_t parent, struct slice name)
{
	uint32_t mask = s->head->n_slots - 1;
	uint32_t at = (uint32_t)hash_of(s->head->seed, parent, name) & mask;

	for (; s->slots[at] != SNAPSHOT_NONE; at = (at + 1) & mask) {
		const struct snapshot_record *r = &s->records[s->slots[at]];
		const char *text = s->text + r->name;

		if (r->parent == parent && strncmp(text, name.p, name.len) == 0 &&
			text[name.len] == '\0')
			return s->slots[at];
	}
	return SNAPSHOT_NONE;
}

uint32_t snapshot_find_path(const struct snapshot *s, struct slice path)
{
	uint32_t record = 0;
	size_t at = 0;

	while (record != SNAPSHOT_NONE) {
		struct slice name;

		while (at < path.len && path.p[at] == '/')
			at++;
		name = (struct slice){.p = path.p + at};
		while (at < path.len && path.p[at] != '/') {
			at++;
			name.len++;
		}
		if (name.len == 0)
			break;
		record = snapshot_find(s, record, name);
	}
	return record;
}

bool snapshot_path(const struct snapshot *s, uint32_t i, struct str *out)
{
	scoped_mem uint32_t *above = NULL;
	size_t n = 0;

	if (i == 0) {
		str_putc(out, '.');
		return true;
	}
	for (; i != 0; i = s->records[i].parent) {
		if (n >= DEPTH_MAX)
			return false;
		if ((n & (n - 1)) == 0)
			above = mem_grow(above, n ? 2 * n : 1, sizeof(*above));
		above[n++] = i;
	}
	while (n > 0) {
		str_puts(out, s->text + s->records[above[--n]].name);
		if (n > 0)
			str_putc(out, '/');
	}
	return true;
}

static bool put(struct snapshot *s, uint32_t i, size_t offset, const void *p, size_t len)
{
	off_t at = (off_t)((const char *)&s->records[i] - (const char *)s->head) + (off_t)offset;

	return pwrite(s->fd, p, len, at) == (ssize_t)len;
}

void snapshot_set_state(struct snapshot *s, uint32_t i, uint32_t state)
{
	(void)put(s, i, offsetof(struct snapshot_record, state), &state, sizeof(state));
}

void snapshot_set_hash(struct snapshot *s, uint32_t i, const unsigned char sha256[DIGEST_LEN],
	const unsigned char attributes[DIGEST_LEN])
{
	uint32_t state = snapshot_state(&s->records[i]) | SNAPSHOT_HASHED;

	/* The state goes last: whoever sees it sees the hash. */
	if (put(s, i, offsetof(struct snapshot_record, sha256), sha256, DIGEST_LEN) &&
		put(s, i, offsetof(struct snapshot_record, attributes), attributes, DIGEST_LEN))
		snapshot_set_state(s, i, state);
}

/* ---- writing ---- */

static uint32_t count_slots(size_t n)
{
	uint32_t n_slots = 2;

	while (n_slots < 2 * n)
		n_slots *= 2;
	return n_slots;
}

static void fill_slots(const struct snapshot *s)
{
	uint32_t mask = s->head->n_slots - 1;

	memset(s->slots, 0xff, s->head->n_slots * sizeof(*s->slots));
	for (uint32_t i = 0; i < s->head->n_records; i++) {
		const struct snapshot_record *r = &s->records[i];
		struct slice name = slice_of(s->text + r->name);
		uint32_t at = (uint32_t)hash_of(s->head->seed, r->parent, name) & mask;

		while (s->slots[at] != SNAPSHOT_NONE)
			at = (at + 1) & mask;
		s->slots[at] = i;
	}
}

static void fill_folders(struct snapshot_record *records, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		records[i].first = records[i].n_entries = 0;
	for (uint32_t i = 1; i < n; i++) {
		struct snapshot_record *folder = &records[records[i].parent];

		if (folder->n_entries++ == 0)
			folder->first = i;
	}
}

static int write_parts(int fd, const struct snapshot *s)
{
	int r = fdio_write_all(fd, s->head, sizeof(*s->head));

	if (r == 0)
		r = fdio_write_all(fd, s->records, s->head->n_records * sizeof(*s->records));
	if (r == 0)
		r = fdio_write_all(fd, s->slots, s->head->n_slots * sizeof(*s->slots));
	if (r == 0)
		r = fdio_write_all(fd, s->text, s->head->text_len);
	return r;
}

int snapshot_write(int dirfd, const char *name, const struct snapshot_head *times,
	struct snapshot_record *records, size_t n, const struct str *text)
{
	scoped_mem char *new_name = mem_printf("%s" NEW_SUFFIX, name);
	struct snapshot_head head = *times;
	struct snapshot s = {.head = &head, .records = records, .text = text->p};
	scoped_fd int fd = -1;
	int r;

	if (n == 0 || n > SNAPSHOT_RECORDS_MAX || text->len == 0 || text->len > UINT32_MAX)
		return -EFBIG;
	memcpy(head.magic, MAGIC, sizeof(head.magic));
	head.version = VERSION;
	head.record_size = sizeof(*records);
	head.n_records = (uint32_t)n;
	head.n_slots = count_slots(n);
	head.text_len = text->len;
	if (getrandom(&head.seed, sizeof(head.seed), 0) != (ssize_t)sizeof(head.seed))
		return -EIO;
	s.slots = new0_n(uint32_t, head.n_slots);
	fill_slots(&s);
	fill_folders(records, head.n_records);
	fd = openat(dirfd, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : write_parts(fd, &s);
	if (r == 0 && renameat(dirfd, new_name, dirfd, name) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		(void)unlinkat(dirfd, new_name, 0); /* what is half made is of no use */
	free(s.slots);
	return r;
}
