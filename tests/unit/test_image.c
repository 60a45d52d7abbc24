/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of src/image that need no root: names, documents, what children tell. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "image/document.h"
#include "image/image.h"
#include "image/inflate.h"
#include "image/layout.h"
#include "image/parcel.h"
#include "image/reference.h"
#include "image/unpack_internal.h"
#include "image/whiteout.h"
#include "util/fdio.h"

#define LEN(array) (sizeof(array) / sizeof((array)[0]))
#define A64        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B64        "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void test_reference(void **state)
{
	static const struct {
		const char *text, *place, *tag; /* place NULL: refused */
		enum reference_kind kind;
	} rows[] = {
		{"./a", "./a", NULL, REFERENCE_PATH},
		{"./a:t", "./a", "t", REFERENCE_PATH},
		{"/a:b/c", "/a:b/c", NULL, REFERENCE_PATH},
		{"../a:b/c:t", "../a:b/c", "t", REFERENCE_PATH},
		{"oci:a:t", "a", "t", REFERENCE_PATH},
		{"oci-archive:/x.tar", "/x.tar", NULL, REFERENCE_PATH},
		{"docker-archive:x.tar:1", "x.tar", "1", REFERENCE_PATH},
		{"docker-archive:../x.tar:h:5000/a/b:1", "../x.tar", "h:5000/a/b:1",
			REFERENCE_PATH},
		{"debian", "docker://debian", NULL, REFERENCE_REGISTRY},
		{"h:5000/a/b:t", "docker://h:5000/a/b:t", NULL, REFERENCE_REGISTRY},
		{"docker://h/a:t", "docker://h/a:t", NULL, REFERENCE_REGISTRY},
		{"h:5000/a:t@sha256:" A64, "docker://h:5000/a@sha256:" A64, NULL,
			REFERENCE_REGISTRY},
		{"h:5000/a@sha256:" A64, "docker://h:5000/a@sha256:" A64, NULL, REFERENCE_REGISTRY},
		{"", NULL, NULL, 0},
		{"-a", NULL, NULL, 0},
		{"docker://-a", NULL, NULL, 0},
		{"a b", NULL, NULL, 0},
		{"~/a", NULL, NULL, 0},
		{"oci::t", NULL, NULL, 0},
		{"./a:", NULL, NULL, 0},
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct reference ref;
		struct err err = {0};
		int r = reference_parse(&ref, rows[i].text, &err);

		if ((r == 0) != (rows[i].place != NULL))
			fail_msg("'%s': %d %s", rows[i].text, r, err.msg);
		if (rows[i].place) {
			assert_string_equal(ref.place, rows[i].place);
			assert_int_equal(ref.kind, rows[i].kind);
		}
		if (rows[i].tag)
			assert_string_equal(ref.tag, rows[i].tag);
		else
			assert_null(ref.tag);
		reference_done(&ref);
	}
}

static void test_parcels(void **state)
{
	scoped_str struct str text = {0};
	struct slice rest, value;
	unsigned long long n = 0;
	int type = 0;

	parcel_add(&text, PARCEL_ENV, slice_of("A=b"));
	parcel_add_count(&text, PARCEL_SIZE, 12345678901ULL);
	rest = str_slice(&text);
	assert_int_equal(parcel_next(&rest, &type, &value), 1);
	assert_true(type == PARCEL_ENV && slice_is(value, "A=b"));
	assert_int_equal(parcel_next(&rest, &type, &value), 1);
	assert_int_equal(parcel_count(value, &n), 0);
	assert_true(type == PARCEL_SIZE && n == 12345678901ULL);
	assert_int_equal(parcel_next(&rest, &type, &value), 0);
	for (size_t cut = 1; cut < 8; cut++) {
		rest = (struct slice){.p = text.p, .len = cut};
		assert_int_equal(parcel_next(&rest, &type, &value), -EBADMSG);
	}
	assert_int_equal(parcel_count(slice_of(""), &n), -EBADMSG);
	assert_int_equal(parcel_count(slice_of("-1"), &n), -EBADMSG);
	assert_int_equal(parcel_count(slice_of("12345678901234567890"), &n), -EBADMSG);
}

static void test_paths(void **state)
{
	static const struct {
		const char *given, *clean; /* clean NULL: refused */
	} rows[] = {{"", ""}, {".", ""}, {"/", ""}, {"./", ""}, {"a", "a"},
		{"./a//b/./c/", "a/b/c"}, {"/etc/x", "etc/x"}, {"..", NULL}, {"a/..", NULL},
		{"a/../b", NULL}, {"...", "..."}};
	struct unpack_path path;
	char name[NAME_MAX + 2];

	for (size_t i = 0; i < LEN(rows); i++) {
		int r = unpack_path_set(&path, rows[i].given, NULL);

		assert_int_equal(r == 0, rows[i].clean != NULL);
		if (rows[i].clean)
			assert_string_equal(path.text, rows[i].clean);
	}
	assert_int_equal(unpack_path_set(&path, "a/bc", NULL), 0);
	assert_string_equal(path.name, "bc");
	memset(name, 'n', sizeof(name));
	name[NAME_MAX + 1] = '\0';
	assert_int_equal(unpack_path_set(&path, name, NULL), -ENAMETOOLONG);
	assert_int_equal(unpack_path_set(&path, name + 1, NULL), 0);
}

static void test_whiteout_names(void **state)
{
	static const struct {
		const char *path, *folder, *name; /* name NULL: refused */
	} rows[] = {{"a", "", "a"}, {"a/b", "a", "b"}, {"a/b/c", "a/b", "c"}, {"/a", "", "a"},
		{"", NULL, NULL}, {"a/", NULL, NULL}, {"a/.", NULL, NULL}, {"..", NULL, NULL}};
	struct slice folder, name;

	for (size_t i = 0; i < LEN(rows); i++) {
		int r = whiteout_split(slice_of(rows[i].path), &folder, &name);

		assert_int_equal(r, rows[i].name ? 0 : -EBADMSG);
		if (rows[i].name)
			assert_true(
				slice_is(folder, rows[i].folder) && slice_is(name, rows[i].name));
	}
	assert_int_equal(
		whiteout_split((struct slice){.p = "a\0b", .len = 3}, &folder, &name), -EBADMSG);
}

/* What came out as "TYPE TEXT" lines. */
static void show(const struct str *parcels, struct str *out)
{
	struct slice rest = str_slice(parcels), text;
	int type;

	while (parcel_next(&rest, &type, &text) == 1)
		str_printf(out, "%c %.*s\n", type, (int)text.len, text.p);
}

static void expect(enum document_kind kind, const char *json, const char *tag, const char *want)
{
	const struct document_wish wish = {.tag = tag, .arch = "amd64"};
	scoped_str struct str parcels = {0}, shown = {0};
	struct err err = {0};
	int r = document_read(kind, slice_of(json), &wish, &parcels, &err);

	if (r < 0)
		str_printf(&shown, "! %s\n", err.msg);
	else
		show(&parcels, &shown);
	assert_string_equal(shown.p ? shown.p : "", want);
}

#define PLATFORM(arch) "\"platform\":{\"os\":\"linux\",\"architecture\":\"" arch "\"}"
#define NAMED(name)    "\"annotations\":{\"org.opencontainers.image.ref.name\":\"" name "\"}"

static void test_index(void **state)
{
	static const char two[] =
		"{\"manifests\":["
		"{\"digest\":\"sha256:" A64
		"\",\"size\":1," PLATFORM("arm64") "},"
						   "{\"digest\":\"sha256:" B64
						   "\",\"size\":2," PLATFORM("amd64") "}]}";
	static const char tags[] =
		"{\"manifests\":["
		"{\"digest\":\"sha256:" A64
		"\",\"size\":1," NAMED("one") "},"
					      "{\"digest\":\"sha256:" B64
					      "\",\"size\":2," NAMED("x/y:two") "}]}";

	expect(DOCUMENT_INDEX, two, NULL, "d sha256:" B64 "\ns 2\n");
	expect(DOCUMENT_INDEX, tags, "one", "d sha256:" A64 "\ns 1\n");
	expect(DOCUMENT_INDEX, tags, "two", "d sha256:" B64 "\ns 2\n");
	expect(DOCUMENT_INDEX, tags, NULL,
		"! it holds several images, so name one behind a colon: one, x/y:two\n");
	expect(DOCUMENT_INDEX, tags, "wo",
		"! it has no image named 'wo'; there is: one, x/y:two\n");
	expect(DOCUMENT_INDEX,
		"{\"manifests\":[{\"mediaType\":\"application/vnd.oci.image.index.v1+json\","
		"\"digest\":\"sha256:" A64 "\",\"size\":9}]}",
		NULL, "d sha256:" A64 "\ns 9\nn \n");
	expect(DOCUMENT_INDEX, "{\"manifests\":[]}", NULL,
		"! it has nothing for linux/amd64, only for: nothing\n");
	expect(DOCUMENT_INDEX, "{\"manifests\":[{\"digest\":\"sha256:" A64 "\",\"size\":-1}]}",
		NULL, "! it names something without its size\n");
}

static void test_manifest_and_config(void **state)
{
	expect(DOCUMENT_MANIFEST,
		"{\"schemaVersion\":2,\"config\":{\"digest\":\"sha256:" A64
		"\",\"size\":3},\"layers\":[{\"mediaType\":\"application/"
		"vnd.oci.image.layer.v1.tar\","
		"\"digest\":\"sha256:" B64 "\",\"size\":4}]}",
		NULL, "c sha256:" A64 "\ns 3\nl sha256:" B64 "\ns 4\n");
	expect(DOCUMENT_MANIFEST, "{\"schemaVersion\":1}", NULL,
		"! it has the old form (schema 1): copy it anew with a tool of today (skopeo copy "
		"--format oci)\n");
	expect(DOCUMENT_MANIFEST, "{\"layers\":[]}", NULL, "! it has no layers\n");
	expect(DOCUMENT_CONFIG,
		"{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":["
		"\"sha256:" A64 "\"]},\"config\":{\"Env\":[\"A=b\"],\"User\":\"u\",\"WorkingDir\":"
		"\"\",\"Cmd\":null,"
		"\"Entrypoint\":[\"e\",\"f\"],\"Labels\":{\"k\":\"v=w\",\"x=y\":\"z\"}}}",
		NULL, "f sha256:" A64 "\ne A=b\nu u\nx e\nx f\nk k=v=w\n");
	expect(DOCUMENT_CONFIG, "{\"os\":\"windows\",\"architecture\":\"amd64\"}", NULL,
		"! it is for windows/amd64, this host is linux/amd64\n");
	expect(DOCUMENT_CONFIG,
		"{\"rootfs\":{\"diff_ids\":[\"sha256:" A64
		"\"]},\"config\":{\"Env\":[\"novalue\"]}}",
		NULL, "! a variable in it is not NAME=VALUE\n");
	expect(DOCUMENT_CONFIG,
		"{\"rootfs\":{\"diff_ids\":[\"sha256:" A64 "\"]},\"config\":{\"Cmd\":\"text\"}}",
		NULL, "! its command is no list of at most 4096\n");
	expect(DOCUMENT_DOCKER,
		"[{\"Config\":\"c.json\",\"RepoTags\":[\"a:1\"],\"Layers\":[\"l/layer.tar\"]},"
		"{\"Config\":\"d.json\",\"RepoTags\":null,\"Layers\":[\"m\"]}]",
		"1", "c c.json\nl l/layer.tar\n");
}

/* What a child that was taken over may say. */
static void test_answers_of_children(void **state)
{
	scoped_str struct str good = {0}, bad = {0}, config = {0};
	struct image image = {0};

	parcel_add(&good, PARCEL_CONFIG, slice_of("sha256:" A64));
	parcel_add_count(&good, PARCEL_SIZE, 7);
	parcel_add(&good, PARCEL_LAYER, slice_of("sha256:" B64));
	parcel_add_count(&good, PARCEL_SIZE, 8);
	assert_int_equal(image_take_manifest(&image, str_slice(&good), NULL), 0);
	assert_true(image.config_size == 7 && image.n_layers == 1 && image.layers[0].size == 8);
	parcel_add(&config, PARCEL_DIFF, slice_of("sha256:../../etc/passwd"));
	assert_int_equal(image_take_config(&image, str_slice(&config), NULL), -EBADMSG);
	str_reset(&config);
	assert_int_equal(image_take_config(&image, str_slice(&config), NULL), -EBADMSG);
	parcel_add(&config, PARCEL_DIFF, slice_of("sha256:" A64));
	assert_int_equal(image_take_config(&image, str_slice(&config), NULL), 0);
	assert_string_equal(image.layers[0].diff, A64);
	parcel_add(&config, PARCEL_DIFF, slice_of("sha256:" A64));
	assert_int_equal(image_take_config(&image, str_slice(&config), NULL), -EBADMSG);
	image_done(&image);
	parcel_add(&bad, PARCEL_CONFIG, (struct slice){.p = "a\0b", .len = 3});
	assert_int_equal(image_take_manifest(&image, str_slice(&bad), NULL), -EBADMSG);
	image_done(&image);
}

/* What was looked up by the one digest must not be kept for what another one leads to. */
static void test_top_is_the_one_that_was_looked_up(void **state)
{
	char dir[] = "/tmp/cloche-test-layout-XXXXXX";
	struct layout layout = {.kind = LAYOUT_OCI, .top = A64};
	scoped_str struct str top = {0};
	char digest[DIGEST_HEX_SIZE];
	struct err err = {0};

	assert_non_null(mkdtemp(dir));
	layout.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fdio_replace(layout.dir_fd, "index.json", "{}", 2, 0600), 0);
	assert_int_equal(layout_read_top(&layout, &top, &err), -EBADMSG);
	assert_string_equal(err.msg, "its index.json was changed while it was read");
	digest_of("{}", 2, digest);
	layout.top = digest;
	str_reset(&top);
	assert_int_equal(layout_read_top(&layout, &top, &err), 0);
	assert_int_equal(unlinkat(layout.dir_fd, "index.json", 0), 0);
	assert_int_equal(close(layout.dir_fd), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void test_compression_is_told_by_its_beginning(void **state)
{
	assert_true(inflate_is_packed((const unsigned char *)"\x1f\x8b\x08", 3));
	assert_true(inflate_is_packed((const unsigned char *)"\x28\xb5\x2f\xfd", 4));
	assert_true(inflate_is_packed((const unsigned char *)"BZh9", 4));
	assert_false(inflate_is_packed((const unsigned char *)"BZ", 2));
	assert_false(inflate_is_packed((const unsigned char *)"", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_parcels),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_whiteout_names),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_manifest_and_config),
		cmocka_unit_test(test_answers_of_children),
		cmocka_unit_test(test_top_is_the_one_that_was_looked_up),
		cmocka_unit_test(test_compression_is_told_by_its_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
