/* SPDX-License-Identifier: Apache-2.0 */
/* create, upload, str_replace: a file comes into being at once, by a rename in its own folder, or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "files/ops.h"
#include "files/outcome.h"
#include "files/target.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define PIECE       65536
#define REPLACE_MAX (16u << 20) /* a file to replace in */
#define NEW_MODE    0644
#define MODE_BITS   0777 /* as any write does, it takes the others away */

struct new_file {
	const struct target_place *place;
	char name[48];
	int fd;
};

static void fail(struct new_file *file, int errnum)
{
	(void)unlinkat(file->place->folder.fd, file->name, 0);
	outcome_fail_errno(errnum, "write", file->place->path);
}

static void open_new(const struct target_place *place, struct new_file *ret)
{
	uint64_t number = 0;

	*ret = (struct new_file){.place = place};
	(void)getrandom(&number, sizeof(number), 0); /* a name in use is refused below */
	snprintf(ret->name, sizeof(ret->name), ".cloche-%016llx.new", (unsigned long long)number);
	ret->fd = openat(place->folder.fd, ret->name,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (ret->fd < 0)
		outcome_fail_errno(errno, "write", place->path);
}

static void put(struct new_file *file, const char *p, size_t len)
{
	int r = fdio_write_all(file->fd, p, len);

	if (r < 0)
		fail(file, -r);
}

/* Owner and mode of what was there, where nothing else was asked for. */
static void dress(struct new_file *file, int64_t mode)
{
	const struct stat *old = &file->place->st;

	if (file->place->exists && fchown(file->fd, old->st_uid, old->st_gid) < 0 && errno != EPERM)
		fail(file, errno);
	if (mode < 0)
		mode = file->place->exists ? old->st_mode : NEW_MODE;
	if (fchmod(file->fd, (mode_t)mode & MODE_BITS) < 0)
		fail(file, errno);
}

static void put_in_place(struct new_file *file, bool overwrite)
{
	const struct target_place *place = file->place;
	int folder = place->folder.fd;
	int r = renameat2(
		folder, file->name, folder, place->name, overwrite ? 0 : RENAME_NOREPLACE);

	if (r < 0)
		fail(file, errno);
	(void)close(file->fd);
}

static void answer(const struct target_place *place, int64_t bytes, int64_t line)
{
	struct str out = {0};
	struct jsonw j = jsonw_to(&out);

	jsonw_object(&j);
	jsonw_ktext(&j, "path", place->path);
	jsonw_kint(&j, "bytes", bytes);
	if (line)
		jsonw_kint(&j, "line", line);
	else
		jsonw_kbool(&j, "created", !place->exists);
	jsonw_object_end(&j);
	outcome_used(place->path);
	outcome_write(out.p, out.len);
}

void ops_create(const struct files_wire_request *request)
{
	struct target_place place;
	struct new_file file;
	char piece[PIECE];
	int64_t left = request->content_len;

	target_find_place(request->path, request->parents, &place);
	if (place.exists && !request->overwrite)
		outcome_fail(FILES_WIRE_EXISTS, "'%.300s' is there already: ask to overwrite it",
			place.path);
	open_new(&place, &file);
	while (left > 0) {
		ssize_t n = read(0, piece, left < PIECE ? (size_t)left : PIECE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			(void)unlinkat(place.folder.fd, file.name, 0);
			outcome_fail(FILES_WIRE_FAILED, "the content was cut off");
		}
		put(&file, piece, (size_t)n);
		left -= n;
	}
	dress(&file, request->mode);
	put_in_place(&file, request->overwrite);
	answer(&place, request->content_len, 0);
}

static int64_t line_at(const char *text, const char *at)
{
	int64_t line = 1;

	for (; text < at && (text = memchr(text, '\n', (size_t)(at - text))); text++)
		line++;
	return line;
}

static char *find_once(const struct files_wire_request *request, const struct str *text)
{
	struct slice old = request->old_text;
	const char *end = text->p + text->len;
	char *first = text->len > 0 ? memmem(text->p, text->len, old.p, old.len) : NULL;
	const char *second =
		first ? memmem(first + 1, (size_t)(end - first - 1), old.p, old.len) : NULL;

	if (!first)
		outcome_fail(FILES_WIRE_NO_MATCH,
			"the file does not hold the old text: nothing was changed");
	if (second)
		outcome_fail(FILES_WIRE_MANY_MATCHES,
			"the old text is there more than once (lines %lld and %lld): nothing was "
			"changed; give more of what is around it",
			(long long)line_at(text->p, first), (long long)line_at(text->p, second));
	return first;
}

/* By its name in the folder that was found. */
static void read_file(const struct target_place *place, struct str *out)
{
	struct target file = {.path = place->path};
	int fd, r;

	file.fd = openat(place->folder.fd, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (file.fd < 0 || fstat(file.fd, &file.st) < 0)
		outcome_fail_errno(errno, "read", place->path);
	fd = target_open_file(&file);
	r = fdio_read_all(fd, REPLACE_MAX, out);
	if (r == -EFBIG)
		outcome_fail(FILES_WIRE_TOO_LARGE, "text is replaced in files of at most %u MiB",
			REPLACE_MAX >> 20);
	if (r < 0)
		outcome_fail_errno(-r, "read", place->path);
	(void)close(fd);
	(void)close(file.fd);
}

void ops_replace(const struct files_wire_request *request)
{
	struct target_place place;
	struct new_file file;
	struct str text = {0};
	const char *at, *behind;

	if (request->old_text.len == 0)
		outcome_fail(FILES_WIRE_INVALID, "the old text is empty");
	target_find_place(request->path, false, &place);
	if (!place.exists)
		outcome_fail_errno(ENOENT, "find", place.path);
	read_file(&place, &text);
	at = find_once(request, &text);
	behind = at + request->old_text.len;
	open_new(&place, &file);
	put(&file, text.p, (size_t)(at - text.p));
	put(&file, request->new_text.p, request->new_text.len);
	put(&file, behind, (size_t)(text.p + text.len - behind));
	dress(&file, -1);
	put_in_place(&file, true);
	answer(&place, (int64_t)(text.len - request->old_text.len + request->new_text.len),
		line_at(text.p, at));
}
