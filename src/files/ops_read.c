/* SPDX-License-Identifier: Apache-2.0 */
/* view and download. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/ops.h"
#include "files/outcome.h"
#include "files/target.h"
#include "util/jsonw.h"
#include "util/utf8.h"

#define PIECE (256u << 10)

static size_t read_some(int fd, const struct target *file, char *to)
{
	ssize_t n;

	do
		n = read(fd, to, PIECE);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		outcome_fail_errno(errno, "read", file->path);
	return (size_t)n;
}

void ops_download(const struct files_wire_request *request)
{
	static char piece[PIECE];
	struct target file;
	size_t n;
	int fd;

	target_find(request->path, &file);
	fd = target_open_file(&file);
	outcome_used(file.path);
	while ((n = read_some(fd, &file, piece)) > 0)
		outcome_write(piece, n);
}

struct range {                     /* of lines, while they go by */
	int64_t line, first, last; /* line: the one that comes next, from 1 */
	size_t max;
	struct str text;
	bool is_full; /* no more fits, or the last line has ended */
	bool is_cut;  /* the last one given is not whole */
	bool has_more;
};

static bool is_in_line(const struct str *text)
{
	return text->len > 0 && text->p[text->len - 1] != '\n';
}

static void add(struct range *range, const char *p, size_t len)
{
	size_t room = range->max - range->text.len;

	str_add(&range->text, p, len < room ? len : room);
	if (len <= room)
		return;
	range->is_full = true;
	range->is_cut = is_in_line(&range->text);
	if (range->is_cut)
		range->text.len = utf8_whole_len(range->text.p, range->text.len);
}

static void pass(struct range *range, const char *p, size_t n)
{
	while (n > 0 && !range->is_full) {
		const char *end = memchr(p, '\n', n);
		size_t len = end ? (size_t)(end + 1 - p) : n;

		if (range->line >= range->first)
			add(range, p, len);
		if (range->is_full)
			break;
		p += len;
		n -= len;
		range->line += end != NULL;
		range->is_full = range->last && range->line > range->last;
	}
	range->has_more = n > 0;
}

static int64_t last_given(const struct range *range)
{
	if (range->text.len == 0)
		return range->first - 1;
	return is_in_line(&range->text) ? range->line : range->line - 1;
}

static void answer(const struct target *file, const struct range *range)
{
	struct str out = {0};
	struct jsonw j = jsonw_to(&out);

	jsonw_object(&j);
	jsonw_ktext(&j, "path", file->path);
	jsonw_kint(&j, "size", file->st.st_size);
	jsonw_kint(&j, "first_line", range->first);
	jsonw_kint(&j, "last_line", last_given(range));
	jsonw_kslice(&j, "content",
		(struct slice){.p = range->text.p ? range->text.p : "", .len = range->text.len});
	jsonw_kbool(&j, "has_more", range->has_more);
	jsonw_kbool(&j, "is_cut", range->is_cut);
	jsonw_object_end(&j);
	outcome_write(out.p, out.len);
}

void ops_view(const struct files_wire_request *request)
{
	static char piece[PIECE];
	struct range range = {.line = 1,
		.first = request->first_line ? request->first_line : 1,
		.last = request->last_line,
		.max = (size_t)request->limit};
	struct target file;
	size_t n;
	int fd;

	target_find(request->path, &file);
	fd = target_open_file(&file);
	while (!range.is_full && (n = read_some(fd, &file, piece)) > 0)
		pass(&range, piece, n);
	range.has_more = range.has_more || (range.is_full && read_some(fd, &file, piece) > 0);
	outcome_used(file.path);
	answer(&file, &range);
}
