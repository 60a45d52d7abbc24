/* SPDX-License-Identifier: Apache-2.0 */
/* Tampers with a real, sealed record in each way and expects the exact findings. */
#include <errno.h>
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

#include "launcher/hostkey.h"
#include "record/record.h"
#include "record/verify.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"

#define ID "sb_0123456789abcdef"

struct place {
	char top[64];
	char *dir;
	struct hostkey *key;
	struct record_head head;
};

static int set_up(void **state)
{
	struct place *place = new0(struct place);
	struct err err;

	snprintf(place->top, sizeof(place->top), "/tmp/cloche-verify-XXXXXX");
	if (!mkdtemp(place->top))
		return -1;
	place->dir = mem_printf("%s/" ID, place->top);
	*state = place;
	return hostkey_open(place->top, &place->key, &err);
}

static int tear_down(void **state)
{
	struct place *place = *state;

	path_remove_all(AT_FDCWD, place->top);
	hostkey_free(place->key);
	free(place->dir);
	free(place);
	return 0;
}

static void emit(struct record *record, enum event_kind kind, const char *exec)
{
	struct event ev = {.kind = kind, .guest_ns = 5, .wall_ms = 6, .exec = slice_of(exec)};

	assert_int_equal(record_emit(record, &ev, NULL), 0);
}

static void seal(struct place *place, struct record *record, enum record_end end)
{
	scoped_str struct str text = {0}, signature = {0};

	assert_int_equal(record_flush(record, false), 0);
	record_get_head(record, end, &place->head);
	record_head_text(&place->head, ID, &text);
	assert_int_equal(hostkey_sign(place->key, text.p, text.len, &signature), 0);
	assert_int_equal(record_put_seal(record, &place->head, signature.p,
				 hostkey_fingerprint(place->key), hostkey_public_b64(place->key)),
		0);
}

static struct record *begin(struct place *place)
{
	struct record_config config = {.dir = place->dir,
		.id = ID,
		.meta = slice_of("{\"a\":1}"),
		.owner_uid = geteuid(),
		.owner_gid = getegid()};
	struct record *record = NULL;
	struct err err = {0};

	path_remove_all(AT_FDCWD, place->dir);
	if (record_create(&config, &record, &err) < 0)
		fail_msg("%s", err.msg);
	return record;
}

/* log.jsonl:   1 header  2 hash  3 start seq 1  4 hash  5 file  6 end seq 6  7 stopped seq 7  8 hash
 * trace:       1 header  2-5 seq 2 to 5  6 hash  7 seq 8  8 hash */
static void make(struct place *place)
{
	struct record_output *output;
	struct record *record = begin(place);
	struct err err;

	emit(record, EVENT_EXEC_START, "ex_1");
	assert_int_equal(record_flush(record, false), 0);
	emit(record, EVENT_FILE_OPEN, "ex_1");
	emit(record, EVENT_FILE_RENAME, "ex_1");
	emit(record, EVENT_FILE_DELETE, "ex_1");
	emit(record, EVENT_PROCESS_EXIT, "ex_1");
	assert_int_equal(record_output_open(record, "ex_1", "out", 1000, &output, &err), 0);
	assert_int_equal(record_output_write(output, "hello", 5), 0);
	record_output_free(output);
	emit(record, EVENT_EXEC_END, "ex_1");
	emit(record, EVENT_SANDBOX_STOPPED, "");
	assert_int_equal(record_flush(record, false), 0);
	emit(record, EVENT_TRACE_BLIND, "");
	seal(place, record, RECORD_FINAL);
	record_free(record);
}

static void change(const struct place *place, const char *command)
{
	scoped_mem char *line = mem_printf("cd %s && { %s; }", place->dir, command);
	FILE *pipe = popen(line, "r");

	assert_non_null(pipe);
	assert_int_equal(pclose(pipe), 0);
}

static void verify(const struct place *place, const struct verify_options *options,
	struct verify_result *ret_result)
{
	struct err err = {0};

	if (verify_record(place->dir, options, ret_result, &err) < 0)
		fail_msg("%s", err.msg);
}

static void test_good(void **state)
{
	struct place *place = *state;
	struct verify_options options = {
		.key_b64 = hostkey_public_b64(place->key), .check_signature = hostkey_check};
	struct verify_result result;

	make(place);
	options.expect_head = options.ledger_head = place->head.head;
	options.ledger_seq = place->head.seq;
	verify(place, &options, &result);
	assert_string_equal(result.findings.p, "");
	assert_true(result.is_intact && result.is_sealed && !result.is_cut);
	assert_int_equal(result.events, 8);
	assert_int_equal(result.first_seq, 1);
	assert_int_equal(result.last_seq, 8);
	assert_string_equal(result.head, place->head.head);
	verify_result_done(&result);
	options.key_b64 = NULL;
	verify(place, &options, &result);
	assert_true(result.is_intact &&
		    !result.is_sealed); /* a key from the record itself proves nothing */
	verify_result_done(&result);
}

static const struct {
	const char *command, *want;
} tampering[] = {
	/* lines */
	{"sed -i '3s/file.rename/file.delete/' trace-00001.jsonl",
		"trace-00001.jsonl line 3 was changed\n"},
	{"sed -i '3s/ex_1/ex_2/' log.jsonl", "log.jsonl line 3 was changed\n"
					     "log.jsonl line 6: exec ex_1 ends, but did not start\n"
					     "exec ex_2: a start without an end\n"},
	{"sed -i 3d trace-00001.jsonl",
		"trace-00001.jsonl: 1 line was removed behind line 2\nseq 3 is missing\n"},
	{"sed -i 3,4d trace-00001.jsonl", "trace-00001.jsonl: 2 lines were removed behind "
					  "line 2\nseq 3 to 4 are missing\n"},
	{"sed -i '3{h;d};4G' trace-00001.jsonl", "trace-00001.jsonl lines 3 to 4 were reordered\n"},
	{"sed -i '3{p;s/seq\":3/seq\":9/}' trace-00001.jsonl",
		"trace-00001.jsonl line 4 was inserted\n"},
	{"sed -i '3p' trace-00001.jsonl", "trace-00001.jsonl line 4: seq 3 stands a second time\n"
					  "trace-00001.jsonl line 4 was inserted\n"},
	{"sed -i '5,7d' log.jsonl",
		"log.jsonl: 3 lines were removed behind line 4\nseq 6 to 7 are missing\n"
		"exec ex_1: a start without an end\n"
		"outputs/ex_1.out.zst is not one that the log names\n"},
	/* hash lines and batches */
	{"sed -i '6s/\"h\":\"./\"h\":\"x/' trace-00001.jsonl",
		"trace-00001.jsonl line 6 (a hash line) was changed\n"
		"trace-00001.jsonl line 8 (a hash line) was changed\n"},
	{"sed -i '8s/\"events\":5/\"events\":6/' trace-00001.jsonl",
		"trace-00001.jsonl line 8 (a hash line) was changed\n"},
	{"sed -i '4d' log.jsonl", "log.jsonl: a hash line was removed before line 7\n"},
	{"sed -i '3,4d' log.jsonl", "log.jsonl line 4: exec ex_1 ends, but did not start\n"
				    "log.jsonl: 1 batch of lines was removed behind line "
				    "2\nseq 1 is missing\n"},
	{"sed -i '1s/sb_0/sb_1/' log.jsonl",
		"log.jsonl line 1 was changed\n"
		"seal.json is of another record, 'sb_0123456789abcdef'\n"},
	{"sed -i '1d' log.jsonl", "log.jsonl has no header\n"
				  "log.jsonl: 1 line was removed at its start\n"},
	/* the end */
	{"sed -i '7,$d' trace-00001.jsonl",
		"the end was cut off: it was sealed up to seq 8 and stops at seq 7\n"},
	{"sed -i '7,$d' trace-00001.jsonl; sed -i '5,$d' log.jsonl",
		"exec ex_1: a start without an end\n"
		"outputs/ex_1.out.zst is not one that the log names\n"
		"the end was cut off: it was sealed up to seq 8 and stops at seq 5\n"},
	{"truncate -s -9 trace-00001.jsonl",
		"trace-00001.jsonl line 7 stands behind the last hash line\n"
		"trace-00001.jsonl ends in a torn line of 117 bytes\n"
		"the trace is not the one that was sealed: the sealed hash is nowhere in "
		"it\n"},
	{"sed -n 7p trace-00001.jsonl | sed 's/seq\":8/seq\":9/' >>log.jsonl",
		"log.jsonl line 9 stands behind the last hash line\n"
		"the log goes on behind the final seal, by 1 line\n"},
	{"sed -i 's/\"end\":\"[a-z]*\"/\"end\":\"suspended\"/' seal.json; "
	 "sed -n 7p trace-00001.jsonl | sed 's/seq\":8/seq\":9/' >>log.jsonl",
		"log.jsonl line 9 stands behind the last hash line\n"
		"the head in seal.json is not that of what it says\n"
		"the log goes on behind the suspended seal, by 1 line (a resume that was killed "
		"leaves it so until `cloche gc`)\n"
		"the signature in seal.json is not good for its head\n"},
	{"sed -i '3s/ex_1/e\\\\nx/' log.jsonl",
		"log.jsonl line 3 was changed\n"
		"log.jsonl line 6: exec ex_1 ends, but did not start\n"
		"exec e?x: a start without an end\n"},
	/* files */
	{"rm trace-00001.jsonl",
		"seq 2 to 5 are missing\n"
		"the end was cut off: it was sealed up to seq 8 and stops at seq 7\n"},
	{"mv trace-00001.jsonl trace-00002.jsonl",
		"trace-00001.jsonl is missing\n"
		"trace-00002.jsonl line 1 is a header that does not belong there\n"},
	{"echo '{}' >meta.json", "meta.json was changed\n"},
	{"rm meta.json", "meta.json is missing\n"},
	{"ln -sf /etc/passwd meta.json", "meta.json cannot be read\n"},
	{"echo x >>outputs/ex_1.out.zst", "outputs/ex_1.out.zst was changed\n"},
	{"cp meta.json outputs/ex_2.out.zst",
		"outputs/ex_2.out.zst is not one that the log names\n"},
	{"mv outputs x; ln -s x outputs",
		"outputs/ex_1.out.zst cannot be read: Not a directory\n"
		"outputs, casts or changes is no folder that can be read\n"},
	{"rm outputs/ex_1.out.zst", "outputs/ex_1.out.zst is missing\n"},
	/* the seal */
	{"rm seal.json", "there is no seal: nothing proves where it ends\n"},
	{"echo '[1' >seal.json", "seal.json is no seal\n"},
	{"sed -i 's/\"final\"/\"open\"/' seal.json",
		"the head in seal.json is not that of what it says\n"
		"the signature in seal.json is not good for its head\n"
		"its end was never sealed: `cloche gc` closes it\n"},
	{"sed -i 's/\"events\":8/\"events\":7/' seal.json",
		"the head in seal.json is not that of what it says\n"
		"the signature in seal.json is not good for its head\n"},
	{"sed -i 's/\"key\":\"...../\"key\":\"AAAAA/' seal.json",
		"it is sealed with another key, FP\n"
		"the signature in seal.json is not good for its head\n"},
	{"sed -i 's/\"signature\":\"...../\"signature\":\"AAAAA/' seal.json",
		"the signature in seal.json is not good for its head\n"},
};

static void test_tampered(void **state)
{
	struct place *place = *state;
	struct verify_options options = {
		.key_b64 = hostkey_public_b64(place->key), .check_signature = hostkey_check};

	for (size_t i = 0; i < sizeof(tampering) / sizeof(tampering[0]); i++) {
		scoped_str struct str want = {0};
		const char *fp = strstr(tampering[i].want, "FP\n");
		struct verify_result result;

		make(place);
		change(place, tampering[i].command);
		verify(place, &options, &result);
		if (fp)
			str_printf(&want, "%.*s%s%s", (int)(fp - tampering[i].want),
				tampering[i].want, hostkey_fingerprint(place->key), fp + 2);
		else
			str_puts(&want, tampering[i].want);
		if (strcmp(result.findings.p, want.p) != 0)
			fail_msg("%s:\n%swanted:\n%s", tampering[i].command, result.findings.p,
				want.p);
		assert_false(result.is_intact);
		verify_result_done(&result);
	}
}

/* Whoever changes a record and makes all its hashes anew still has not the key. */
static void test_rewritten(void **state)
{
	struct place *place = *state;
	struct verify_options options = {
		.key_b64 = hostkey_public_b64(place->key), .check_signature = hostkey_check};
	scoped_mem char *kept = mem_printf("%s/seal", place->top);
	struct verify_result result;
	struct record *record;

	make(place);
	change(place, "cp seal.json ../seal");
	record = begin(place);
	emit(record, EVENT_EXEC_START, "ex_9");
	for (int i = 0; i < 6; i++)
		emit(record, EVENT_FILE_OPEN, "ex_9");
	emit(record, EVENT_EXEC_END, "ex_9");
	record_free(record);
	change(place, "cp ../seal seal.json");
	verify(place, &options, &result);
	assert_string_equal(result.findings.p,
		"the log is not the one that was sealed: the sealed hash is nowhere in it\n"
		"the trace is not the one that was sealed: the sealed hash is nowhere in it\n");
	verify_result_done(&result);
}

static void test_other_knowledge(void **state)
{
	struct place *place = *state;
	struct verify_options options = {
		.key_b64 = hostkey_public_b64(place->key), .check_signature = hostkey_check};
	struct verify_result result;
	scoped_str struct str want = {0};

	make(place);
	options.expect_head = "abc";
	verify(place, &options, &result);
	str_printf(&want, "its head is %s, not the expected abc\n", place->head.head);
	assert_string_equal(result.findings.p, want.p);
	verify_result_done(&result);
	options.expect_head = NULL;
	options.ledger_head = "abc";
	options.ledger_seq = 12;
	verify(place, &options, &result);
	assert_string_equal(result.findings.p,
		"the end was cut off: the ledger knows it up to seq 12, the seal ends at seq 8\n");
	verify_result_done(&result);
	options.ledger_seq = 8;
	verify(place, &options, &result);
	assert_string_equal(result.findings.p, "the ledger knows another head, abc\n");
	verify_result_done(&result);
	options.ledger_seq = 3;
	verify(place, &options, &result);
	assert_string_equal(
		result.findings.p, "the ledger does not know its seal: it stops at seq 3\n");
	verify_result_done(&result);
}

/* A writer that died, and gc that closed its record. */
static void test_cut(void **state)
{
	struct place *place = *state;
	struct verify_options options = {
		.key_b64 = hostkey_public_b64(place->key), .check_signature = hostkey_check};
	struct record *record = begin(place);
	struct verify_result result;
	struct err err;

	emit(record, EVENT_EXEC_START, "ex_1");
	seal(place, record, RECORD_OPEN);
	emit(record, EVENT_FILE_OPEN, "ex_1");
	verify(place, &options, &result); /* alive */
	assert_string_equal(result.findings.p, "");
	assert_true(result.is_intact && !result.is_sealed && !result.is_cut);
	verify_result_done(&result);
	record_free(record);
	verify(place, &options, &result);
	assert_string_equal(result.findings.p, "exec ex_1: a start without an end\n"
					       "its end was never sealed: `cloche gc` closes it\n");
	assert_true(result.is_cut);
	verify_result_done(&result);
	change(place, "sed -n 2p trace-00001.jsonl | sed 's/seq\":2/seq\":5/' >>trace-00001.jsonl; "
		      "printf '{\"v' >>log.jsonl; mkdir casts; echo x >casts/ex_1.cast");
	assert_int_equal(record_reopen(place->dir, &record, &err), 0);
	emit(record, EVENT_EXEC_END, "ex_1");
	seal(place, record, RECORD_CUT);
	record_free(record);
	verify(place, &options, &result);
	assert_string_equal(result.findings.p, "");
	assert_true(result.is_intact && result.is_sealed && result.is_cut);
	assert_int_equal(result.events, 4);
	assert_int_equal(result.last_seq, 6); /* 3 and 4 are a gap that the log tells of */
	verify_result_done(&result);
}

static void emit_row(struct record *record, enum event_kind kind, const char *exec, int64_t id)
{
	struct event ev = {.kind = kind, .exec = slice_of(exec)};

	if (id)
		event_set(&ev, id, id);
	assert_int_equal(record_emit(record, &ev, NULL), 0);
}

/* Several execs at once end in any order; one that failed inside Cloche has no end. */
static void test_rows(void **state)
{
	static const struct {
		int64_t ends[3];
		const char *finds;
	} cases[] = {
		{{1, 2, 3}, ""},
		{{3, 1, 2}, ""},
		{{1, 1, 2}, "log.jsonl line 9 is row 1, which stands there already or is none\n"},
		{{4, 1, 2}, "row 3 of the execs is missing: row 4 comes next\n"},
	};
	struct place *place = *state;
	struct verify_options options = {.key_b64 = hostkey_public_b64(place->key)};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static const char *const names[] = {"ex_1", "ex_2", "ex_3"};
		struct record *record = begin(place);
		struct verify_result result;

		for (int k = 0; k < 3; k++)
			emit_row(record, EVENT_EXEC_START, names[k], k + 1);
		emit_row(record, EVENT_EXEC_START, "ex_4", 4);
		emit_row(record, EVENT_SANDBOX_ERROR, "ex_4", 0);
		for (int k = 0; k < 3; k++)
			emit_row(record, EVENT_EXEC_END, names[k], cases[i].ends[k]);
		seal(place, record, RECORD_FINAL);
		record_free(record);
		verify(place, &options, &result);
		assert_string_equal(result.findings.p ? result.findings.p : "", cases[i].finds);
		verify_result_done(&result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_good, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_tampered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rewritten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_knowledge, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cut, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rows, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
