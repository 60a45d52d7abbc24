/* SPDX-License-Identifier: Apache-2.0 */
/* grep: lines of text files that hold a text or match an expression (regex(7), extended). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/ops.h"
#include "files/outcome.h"
#include "files/target.h"
#include "files/walk.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/name_pattern.h"
#include "util/scoped.h"
#include "util/utf8.h"

#define PIECE      (256u << 10)
#define LINE_MAX_  65536 /* what is behind is not looked at */
#define SHOWN_MAX  1000  /* bytes of a line that are given */
#define ANSWER_MAX (4u << 20)
#define READ_MAX   (1LL << 30)
#define LOOK_EVERY 256 /* lines between two looks at the clock */

struct grep {
	const struct files_wire_request *request;
	struct jsonw j;
	regex_t regex;
	int64_t deadline_ns, n, n_read, n_files, n_binary, n_unread;
	const char *why; /* it ended before its end, or NULL */
};

/* Of one file. */
struct lines {
	const char *path;
	int64_t number;
	struct str line; /* its begin, where its end has not come yet */
};

static void compile(struct grep *grep)
{
	const struct files_wire_request *request = grep->request;
	int flags = REG_EXTENDED | REG_NOSUB | (request->ignore_case ? REG_ICASE : 0);
	scoped_mem char *text = mem_copy(request->pattern.p, request->pattern.len);
	scoped_mem char *quoted = mem_zero(2, request->pattern.len + 1);
	char why[128];
	size_t n = 0;
	int r;

	for (size_t i = 0; request->literal && text[i]; i++) {
		if (strchr("\\^$.[|()?*+{", text[i]))
			quoted[n++] = '\\';
		quoted[n++] = text[i];
	}
	r = regcomp(&grep->regex, request->literal ? quoted : text, flags);
	if (r == 0)
		return;
	(void)regerror(r, &grep->regex, why, sizeof(why));
	outcome_fail(FILES_WIRE_INVALID, "the expression cannot be used: %s", why);
}

/* Plain text of one case needs no expression, which costs microseconds a line. */
static bool matches(const struct grep *grep, struct slice line)
{
	regmatch_t whole = {.rm_so = 0, .rm_eo = (regoff_t)line.len};

	if (grep->request->literal && !grep->request->ignore_case)
		return line.len > 0 && memmem(line.p, line.len, grep->request->pattern.p,
					       grep->request->pattern.len);
	return regexec(&grep->regex, line.p ? line.p : "", 1, &whole, REG_STARTEND) == 0;
}

static void stop(struct grep *grep, const char *why)
{
	if (!grep->why)
		grep->why = why;
}

static void look_at(struct grep *grep, struct lines *lines, struct slice line)
{
	struct slice shown = line;

	lines->number++;
	if (lines->number % LOOK_EVERY == 0 && clock_mono_ns() > grep->deadline_ns)
		stop(grep, "time");
	if (line.len > 0 && line.p[line.len - 1] == '\r')
		shown.len = --line.len;
	if (grep->why || !matches(grep, line))
		return;
	if (grep->n == grep->request->limit || grep->j.out->len > ANSWER_MAX) {
		stop(grep, "limit");
		return;
	}
	grep->n++;
	shown.len = utf8_cut(line.p, line.len, SHOWN_MAX);
	jsonw_object(&grep->j);
	jsonw_ktext(&grep->j, "path", lines->path);
	jsonw_kint(&grep->j, "line", lines->number);
	jsonw_kslice(&grep->j, "text", shown);
	if (shown.len < line.len)
		jsonw_kbool(&grep->j, "is_cut", true);
	jsonw_object_end(&grep->j);
}

static void keep(struct lines *lines, const char *p, size_t len)
{
	size_t room = LINE_MAX_ - lines->line.len;

	str_add(&lines->line, p, len < room ? len : room);
}

static void split(struct grep *grep, struct lines *lines, const char *p, size_t n)
{
	while (n > 0 && !grep->why) {
		const char *end = memchr(p, '\n', n);
		size_t len = end ? (size_t)(end - p) : n;

		if (!end || lines->line.len > 0)
			keep(lines, p, len);
		if (!end)
			return;
		if (lines->line.len > 0)
			look_at(grep, lines, str_slice(&lines->line));
		else
			look_at(grep, lines,
				(struct slice){.p = p, .len = len < LINE_MAX_ ? len : LINE_MAX_});
		str_reset(&lines->line);
		p = end + 1;
		n -= len + 1;
	}
}

static void search(struct grep *grep, int fd, const char *path)
{
	static char piece[PIECE];
	struct lines lines = {.path = path};
	ssize_t n = read(fd, piece, PIECE);

	grep->n_files++;
	if (n > 0 && memchr(piece, '\0', (size_t)n)) {
		grep->n_binary++;
		n = 0;
	}
	for (; n > 0 && !grep->why; n = read(fd, piece, PIECE)) {
		grep->n_read += n;
		if (grep->n_read > READ_MAX)
			stop(grep, "bytes");
		else if (clock_mono_ns() > grep->deadline_ns)
			stop(grep, "time");
		split(grep, &lines, piece, (size_t)n);
	}
	if (lines.line.len > 0 && !grep->why)
		look_at(grep, &lines, str_slice(&lines.line));
	str_done(&lines.line);
	(void)close(fd);
}

struct search_below {
	struct grep *grep;
	const char *folder;
};

static bool is_asked(const struct files_wire_request *request, const struct walk_entry *entry)
{
	bool is_of_name = request->only.len > 0 && !memchr(request->only.p, '/', request->only.len);

	return request->only.len == 0 || name_pattern_matches(request->only,
						 is_of_name ? slice_of(entry->name) : entry->path);
}

static bool on_entry(void *ctx, const struct walk_entry *entry)
{
	struct search_below *below = ctx;
	scoped_mem char *path = NULL;
	struct target file;
	int fd;

	if (entry->type != DT_REG || !is_asked(below->grep->request, entry))
		return true;
	path = mem_printf(
		"%s%s%s", below->folder, strcmp(below->folder, "/") == 0 ? "" : "/", entry->path.p);
	file = (struct target){.path = path,
		.fd = openat(entry->dirfd, entry->name, O_PATH | O_NOFOLLOW | O_CLOEXEC)};
	if (file.fd < 0)
		return true; /* it is gone */
	fd = fstat(file.fd, &file.st) == 0 && !target_is_kernels(file.fd, &file.st)
	             ? target_try_file(&file)
	             : -1;
	if (fd >= 0)
		search(below->grep, fd, path);
	else
		below->grep->n_unread++;
	(void)close(file.fd);
	return !below->grep->why;
}

static void search_all(struct grep *grep, const struct target *from)
{
	struct search_below below = {.grep = grep, .folder = from->path};
	struct walk walk = {.deadline_ns = grep->deadline_ns, .on_entry = on_entry, .ctx = &below};
	const char *why;

	if (S_ISREG(from->st.st_mode)) {
		search(grep, target_open_file(from), from->path);
		return;
	}
	why = walk_end_name(walk_folder(&walk, target_open_folder(from)));
	if (why)
		stop(grep, why);
}

void ops_grep(const struct files_wire_request *request)
{
	struct str out = {0};
	struct grep grep = {.request = request,
		.j = jsonw_to(&out),
		.deadline_ns = clock_mono_ns() + OPS_TIME_MS * CLOCK_NS_PER_MS};
	struct target from;

	compile(&grep);
	target_find(request->path, &from);
	jsonw_object(&grep.j);
	jsonw_ktext(&grep.j, "path", from.path);
	jsonw_key(&grep.j, "matches");
	jsonw_array(&grep.j);
	search_all(&grep, &from);
	jsonw_array_end(&grep.j);
	jsonw_kint(&grep.j, "files", grep.n_files);
	jsonw_kint(&grep.j, "binary_files", grep.n_binary);
	jsonw_kint(&grep.j, "unreadable_files", grep.n_unread);
	jsonw_kbool(&grep.j, "truncated", grep.why != NULL);
	jsonw_ktext(&grep.j, "why", grep.why);
	jsonw_object_end(&grep.j);
	outcome_used(from.path);
	outcome_write(out.p, out.len);
}
