/* SPDX-License-Identifier: Apache-2.0 */
/* cloche-image: turns what --image names into layers. Started by cloche, as root, where an image was asked for; a program of
 * its own because of what it is linked with. What is foreign is read by its children, without privilege.
 *
 *   cloche-image resolve STATE UID GID quiet|shown known|anew REFERENCE
 *   cloche-image clean STATE
 *
 * The answer is one line of JSON on stdout: the image, with "note", or {"errno", "error"}. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/image_resolve.h"
#include "image/layer_store.h"
#include "image/progress.h"
#include "spec/spec_parse.h"
#include "util/fdio.h"
#include "util/jsonw.h"

#define BYTES_DEFAULT   (UINT64_C(32) << 30)
#define ENTRIES_DEFAULT 4000000

enum { RESOLVE_ARGS = 8, CLEAN_ARGS = 3 };

static int read_limits(struct unpack_limits *limits, struct err *err)
{
	const char *bytes = getenv("CLOCHE_IMAGE_MAX"),
		   *entries = getenv("CLOCHE_IMAGE_MAX_ENTRIES");
	int64_t n = 0;
	int r = 0;

	*limits = (struct unpack_limits){.bytes = BYTES_DEFAULT, .entries = ENTRIES_DEFAULT};
	if (bytes) {
		r = spec_parse_size(bytes, &n, err);
		limits->bytes = (uint64_t)n;
	}
	if (r == 0 && entries) {
		r = spec_parse_count(entries, &n, err);
		limits->entries = (uint64_t)n;
	}
	return r < 0 ? err_wrap(err, r, "CLOCHE_IMAGE_MAX and CLOCHE_IMAGE_MAX_ENTRIES") : 0;
}

/* note goes into the object that json is. */
static int answer(struct str *json, const struct str *note)
{
	scoped_str struct str out = {0};
	struct jsonw j = jsonw_to(&out);

	jsonw_object(&j);
	jsonw_key(&j, "image");
	jsonw_raw(&j, str_slice(json));
	jsonw_ktext(&j, "note", note->p ? note->p : "");
	jsonw_object_end(&j);
	return fdio_write_all(STDOUT_FILENO, out.p, out.len) < 0;
}

static int fail(int r, const struct err *err)
{
	scoped_str struct str out = {0};
	struct jsonw j = jsonw_to(&out);

	jsonw_object(&j);
	jsonw_kint(&j, "errno", -r);
	jsonw_ktext(&j, "error", err->msg);
	jsonw_object_end(&j);
	(void)fdio_write_all(STDOUT_FILENO, out.p, out.len); /* the status says it too */
	return 1;
}

static int resolve(char **argv)
{
	scoped_str struct str json = {0}, note = {0};
	struct image_request request = {.state_dir = argv[2],
		.uid = (uid_t)strtoul(argv[3], NULL, 10),
		.gid = (gid_t)strtoul(argv[4], NULL, 10),
		.is_anew = strcmp(argv[6], "anew") == 0,
		.reference = argv[7]};
	struct err err = {0};
	int r = read_limits(&request.limits, &err);

	progress_begin(strcmp(argv[5], "shown") == 0 && isatty(STDERR_FILENO));
	if (r == 0)
		r = image_resolve(&request, &json, &note, &err);
	progress_clear();
	return r < 0 ? fail(r, &err) : answer(&json, &note);
}

static int clean(const char *state_dir)
{
	struct layer_store store = {.fd = -1};
	struct err err = {0};
	int r = layer_store_open(&store, state_dir, &err);

	if (r == 0)
		layer_store_clean(&store);
	layer_store_done(&store);
	return r < 0 ? fail(r, &err) : fdio_write_all(STDOUT_FILENO, "{}\n", 3) < 0;
}

int main(int argc, char **argv)
{
	int status = 2;

	(void)fdio_fill_standard();
	(void)umask(077);
	/* Names in archives are bytes; libarchive asks the locale what they are in tars that say UTF-8. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	progress_catch_signals();
	if (argc == RESOLVE_ARGS && strcmp(argv[1], "resolve") == 0)
		status = resolve(argv);
	else if (argc == CLEAN_ARGS && strcmp(argv[1], "clean") == 0)
		status = clean(argv[2]);
	return status;
}
