/* SPDX-License-Identifier: Apache-2.0 */
#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "event/event_json.h"
#include "observer/decode.h"
#include "util/str.h"

#define START_NS 1000
#define ID_BASE  100000

/* A record being built: the struct, and bytes behind it. */
struct record {
	union {
		struct wire_head head;
		struct wire_call call;
		struct wire_exec exec;
		struct wire_exit exit;
		struct wire_chunk chunk;
		struct wire_output output;
		struct wire_refused refused;
		struct wire_fork fork;
		char bytes[WIRE_RECORD_MAX];
	};
	size_t len;
};

static void begin(struct record *r, enum wire_kind kind, size_t size)
{
	memset(r, 0, sizeof(*r));
	r->len = size;
	r->head.kind = (unsigned char)kind;
	r->head.ns = START_NS + 5;
	r->head.pid = 7;
	r->head.task = 8;
	r->head.host_pid = 70;
	r->head.exec = 3;
}

static uint16_t add(struct record *r, const void *p, size_t len)
{
	memcpy(r->bytes + r->len, p, len);
	r->len += len;
	return (uint16_t)len;
}

static void add_text(struct record *r, int i, const char *text)
{
	r->call.text_len[i] = add(r, text, strlen(text) + 1);
}

static void add_base(struct record *r, int i, const char *names, size_t len)
{
	r->call.base_len[i] = add(r, names, len);
}

static void expect(struct decode *d, const struct record *r, const char *const *lines, int n)
{
	scoped_str struct str out = {0};
	struct decode_head head;

	assert_int_equal(decode_record(d, r, r->len, &head), n);
	assert_int_equal(head.exec, 3);
	for (int i = 0; i < n; i++) {
		str_reset(&out);
		event_json_write(&out, &decode_get(d, (size_t)i)->ev, slice_of("s"));
		assert_non_null(strstr(out.p, "\"guest_ns\":5,"));
		assert_string_equal(strstr(out.p, "\"kind\""), lines[i]);
	}
}

#define EXPECT(d, r, ...) \
	do { \
		static const char *const lines_[] = {__VA_ARGS__}; \
		expect(d, r, lines_, sizeof(lines_) / sizeof(lines_[0])); \
	} while (0)

static void test_exit(void **state)
{
	static const struct {
		int status;
		const char *line;
	} cases[] = {
		{0, "\"kind\":\"process.exit\",\"pid\":7,\"task\":8,\"code\":0}"},
		{137 << 8, "\"kind\":\"process.exit\",\"pid\":7,\"task\":8,\"code\":137}"},
		{255 << 8, "\"kind\":\"process.exit\",\"pid\":7,\"task\":8,\"code\":255}"},
		{9, "\"kind\":\"process.exit\",\"pid\":7,\"task\":8,\"signal\":9}"},
		{11 | 0x80, "\"kind\":\"process.exit\",\"pid\":7,\"task\":8,\"signal\":11}"},
	};
	scoped(decode) struct decode *d = decode_new(START_NS, ID_BASE);
	static struct record r;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&r, WIRE_EXIT, sizeof(r.exit));
		r.head.ret = cases[i].status;
		expect(d, &r, &cases[i].line, 1);
	}
	r.exit.written[1] = 9000;
	r.exit.file[1] = 4;
	EXPECT(d, &r,
		"\"kind\":\"process.output\",\"pid\":7,\"task\":8,\"stream\":\"stderr\",\"bytes\":"
		"9000,\"file\":4}",
		"\"kind\":\"process.exit\",\"pid\":7,\"task\":8,\"signal\":11}");
}

static void test_open(void **state)
{
	scoped(decode) struct decode *d = decode_new(START_NS, ID_BASE);
	static struct record r;

	begin(&r, WIRE_CALL, sizeof(r.call));
	r.head.nr = __NR_openat;
	r.head.ret = 3;
	r.head.flags = WIRE_FILE;
	r.call.arg[0] = O_CREAT | O_TRUNC | O_RDWR;
	r.call.fmode = 3 | 1u << 20;
	r.call.imode = S_IFREG;
	add_base(&r, 0, "f\0dir", 6);
	EXPECT(d, &r,
		"\"kind\":\"file.open\",\"pid\":7,\"task\":8,\"path\":\"/dir/"
		"f\",\"access\":\"read_write\","
		"\"create\":true,\"created\":true}");
	r.call.fmode = 2;
	r.head.flags |= WIRE_DELETED1;
	EXPECT(d, &r,
		"\"kind\":\"file.open\",\"pid\":7,\"task\":8,\"path\":\"/dir/"
		"f\",\"path_state\":\"deleted\","
		"\"access\":\"write\",\"create\":true,\"truncate\":true}");
	r.call.fmode = 1u << 14;
	r.call.arg[0] = O_PATH;
	r.head.flags = WIRE_FILE | WIRE_CUT1;
	EXPECT(d, &r,
		"\"kind\":\"file.open\",\"pid\":7,\"task\":8,\"path\":\"dir/"
		"f\",\"path_unresolved\":true,"
		"\"access\":\"path\"}");
}

static void test_names(void **state)
{
	scoped(decode) struct decode *d = decode_new(START_NS, ID_BASE);
	static struct record r;
	struct decode_head head;
	struct decoded *one;

	begin(&r, WIRE_CALL, sizeof(r.call));
	r.head.nr = __NR_renameat;
	r.head.ret = -EACCES;
	add_text(&r, 0, "a");
	add_base(&r, 0, "w", 2);
	add_text(&r, 1, "/proc/self/fd/5/b");
	add_base(&r, 1, "", 0);
	r.call.skip[1] = 15;
	EXPECT(d, &r, "\"kind\":\"file.rename\",\"pid\":7,\"task\":8,\"result\":\"EACCES\"}");
	one = decode_get(d, 0);
	assert_int_equal(one->n_names, 2);
	assert_true(slice_is(one->names[0].base, "/w") && slice_is(one->names[0].text, "a"));
	assert_true(slice_is(one->names[1].base, "/") && slice_is(one->names[1].text, "b"));
	assert_int_equal(one->names[0].field, EVENT_F_from);
	assert_int_equal(one->names[1].field, EVENT_F_to);
	/* its own filter says that there is a descriptor, and there is none */
	begin(&r, WIRE_CALL, sizeof(r.call));
	r.head.nr = __NR_open;
	r.head.flags = WIRE_OWN_FILTER;
	add_text(&r, 0, "/x");
	assert_int_equal(decode_record(d, &r, r.len, &head), 0);
}

static void begin_exec(struct record *r, unsigned argc, size_t argv_bytes)
{
	begin(r, WIRE_EXEC, sizeof(r->exec));
	r->head.flags = WIRE_FILE;
	r->exec.argc = argc;
	r->exec.argv_bytes = argv_bytes;
	r->exec.kuid = ID_BASE + 33;
	r->exec.ppid = 1;
	r->exec.path_len = add(r, "true\0bin", 9);
	r->exec.cwd_len = 0;
}

static void test_exec(void **state)
{
	scoped(decode) struct decode *d = decode_new(START_NS, ID_BASE);
	static struct record r;

	begin_exec(&r, 3, 5);
	r.exec.argv_len = add(&r, "a\0\0b", 5);
	EXPECT(d, &r,
		"\"kind\":\"process.exec\",\"pid\":7,\"task\":8,\"path\":\"/bin/"
		"true\",\"argv\":[\"a\",\"\",\"b\"],"
		"\"ppid\":1,\"cwd\":\"/\",\"uid\":33}");
	begin_exec(&r, 2, 900);
	r.exec.argv_len = add(&r, "a\0bc", 4);
	EXPECT(d, &r,
		"\"kind\":\"process.exec\",\"pid\":7,\"task\":8,\"path\":\"/bin/"
		"true\",\"argv\":[\"a\",\"bc\"],"
		"\"argv_count\":2,\"argv_bytes\":900,\"argv_truncated\":true,\"ppid\":1,\"cwd\":\"/"
		"\",\"uid\":33}");
}

/* The pieces of long arguments come first, and may be lost. */
static void test_chunks(void **state)
{
	scoped(decode) struct decode *d = decode_new(START_NS, ID_BASE);
	static struct record r;
	struct decode_head head;

	for (int lost = 0; lost < 2; lost++) {
		for (unsigned i = 0; i < 2u - (unsigned)lost; i++) {
			begin(&r, WIRE_CHUNK, sizeof(r.chunk));
			r.chunk.offset = i * 3;
			r.chunk.len = add(&r, "xyz", 3);
			assert_int_equal(decode_record(d, &r, r.len, &head), 0);
		}
		begin_exec(&r, 2, 9);
		r.exec.chunks_len = 6;
		r.exec.argv_len = add(&r, "\0b", 3);
		assert_int_equal(decode_record(d, &r, r.len, &head), 1);
		if (lost)
			assert_true(decode_get(d, 0)->ev.argv_truncated);
		else
			assert_false(event_has(&decode_get(d, 0)->ev, argv_truncated));
		assert_true(slice_is(decode_get(d, 0)->ev.argv.items[0], lost ? "xyz" : "xyzxyz"));
	}
}

static void test_refused(void **state)
{
	scoped(decode) struct decode *d = decode_new(START_NS, ID_BASE);
	static struct record r;

	begin(&r, WIRE_REFUSED, sizeof(r.refused));
	r.head.nr = __NR_unshare;
	r.head.ret = -EPERM;
	r.refused.args[0] = 0x10000000;
	EXPECT(d, &r,
		"\"kind\":\"sandbox.refused\",\"pid\":7,\"task\":8,\"result\":\"EPERM\",\"call\":"
		"\"unshare\","
		"\"args\":[\"0x10000000\",\"0x0\",\"0x0\",\"0x0\",\"0x0\",\"0x0\"]}");
	r.head.nr = __NR_io_uring_setup;
	r.head.ret = 5;
	EXPECT(d, &r,
		"\"kind\":\"trace.blind\",\"pid\":7,\"task\":8,\"call\":\"io_uring_setup\","
		"\"reason\":\"io_uring works without system calls\",\"source_lost\":\"files\"}");
	r.head.nr = 8;
	r.head.ret = -ENOSYS;
	r.head.flags = WIRE_COMPAT;
	EXPECT(d, &r,
		"\"kind\":\"sandbox.refused\",\"pid\":7,\"task\":8,\"result\":\"ENOSYS\",\"call\":"
		"\"i386:8\","
		"\"args\":[\"0x10000000\",\"0x0\",\"0x0\",\"0x0\",\"0x0\",\"0x0\"]}");
}

/* Every length that does not fit is refused, whatever the kind. */
static void test_bad(void **state)
{
	scoped(decode) struct decode *d = decode_new(START_NS, ID_BASE);
	static struct record r;
	struct decode_head head;

	for (unsigned kind = 0; kind < 256; kind++) {
		memset(&r, 0xff, sizeof(r));
		r.head.kind = (unsigned char)kind;
		for (size_t len = 0; len < 200; len++)
			if (kind != WIRE_FORK && kind != WIRE_EXIT && kind != WIRE_TOTALS &&
				kind != WIRE_REFUSED && kind != WIRE_CLOSED)
				assert_int_equal(decode_record(d, &r, len, &head), -EBADMSG);
			else
				(void)decode_record(d, &r, len, &head);
	}
	begin(&r, WIRE_CALL, sizeof(r.call));
	r.head.nr = __NR_unlink;
	r.call.text_len[0] = add(&r, "no end", 6);
	assert_int_equal(decode_record(d, &r, r.len, &head), -EBADMSG);
	r.call.text_len[0] = 0;
	assert_int_equal(decode_record(d, &r, r.len, &head), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_exit), cmocka_unit_test(test_open),
		cmocka_unit_test(test_names), cmocka_unit_test(test_exec),
		cmocka_unit_test(test_chunks), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bad)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
