/* SPDX-License-Identifier: Apache-2.0 */
/* asciicast v2 (docs.asciinema.org/manual/asciicast/v2): a header line, then a line an event. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "record/record.h"
#include "record/record_files.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/utf8.h"

#define FOLDER   "casts"
#define UTF8_MAX 4

struct record_cast {
	struct record *record;
	char *name;
	int fd, failed;
	int64_t start_ns;
	struct str buf;
	char held[UTF8_MAX]; /* the start of a character whose rest is still to come */
	size_t n_held;
	struct digest digest;
	uint64_t bytes;
};

static void write_header(
	struct record_cast *cast, const struct record_cast_start *start, const char *title)
{
	struct jsonw j = jsonw_to(&cast->buf);

	jsonw_object(&j);
	jsonw_kint(&j, "version", 2);
	jsonw_kint(&j, "width", start->columns);
	jsonw_kint(&j, "height", start->rows);
	jsonw_kint(&j, "timestamp", clock_wall_ms() / 1000);
	if (title) {
		jsonw_key(&j, "title");
		jsonw_text(&j, title);
	}
	jsonw_object_end(&j);
	str_putc(&cast->buf, '\n');
}

static int write_out(struct record_cast *cast)
{
	if (cast->failed == 0)
		cast->failed = fdio_write_all(cast->fd, cast->buf.p, cast->buf.len);
	if (cast->failed == 0) {
		digest_add(&cast->digest, cast->buf.p, cast->buf.len);
		cast->bytes += cast->buf.len;
	}
	str_reset(&cast->buf);
	return cast->failed;
}

int record_cast_open(struct record *record, const struct record_cast_start *start,
	struct record_cast **ret_cast, struct err *err)
{
	scoped(record_cast) struct record_cast *cast = new0(struct record_cast);
	scoped_str struct str redacted = {0};
	const char *title = start->title;
	int r;

	cast->fd = -1;
	if (!record_internal_is_name(start->exec_id))
		return err_set(err, -EINVAL, "'%s' is no name for a recording", start->exec_id);
	cast->name = mem_printf(FOLDER "/%s.cast", start->exec_id);
	digest_init(&cast->digest);
	r = record_files_create(record, cast->name);
	if (r < 0)
		return err_set(err, r, "make '%s': %m", cast->name);
	cast->fd = r;
	cast->record = record;
	cast->start_ns = clock_mono_ns();
	if (title && record->redact && redact_text(record->redact, slice_of(title), &redacted))
		title = redacted.p;
	write_header(cast, start, title);
	r = write_out(cast);
	if (r < 0)
		return err_set(err, r, "write '%s': %m", cast->name);
	*ret_cast = take(&cast);
	return 0;
}

static int add_event(struct record_cast *cast, const char *code, struct slice text)
{
	double at = (double)(clock_mono_ns() - cast->start_ns) / (double)CLOCK_NS_PER_S;
	struct jsonw j = jsonw_to(&cast->buf);

	jsonw_array(&j);
	str_printf(&cast->buf, "%.6f", at);
	j.comma = true;
	jsonw_text(&j, code);
	jsonw_slice(&j, text);
	jsonw_array_end(&j);
	str_putc(&cast->buf, '\n');
	return write_out(cast);
}

/* How many bytes at the end are the start of a character that may still be completed. */
static size_t open_end(const char *p, size_t len)
{
	for (size_t back = 1; back < UTF8_MAX && back <= len; back++) {
		unsigned char c = (unsigned char)p[len - back];
		size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;

		if ((c & 0xc0) == 0x80)
			continue;
		return want > back && c <= 0xf4 ? back : 0;
	}
	return 0;
}

int record_cast_output(struct record_cast *cast, const void *p, size_t len)
{
	scoped_str struct str text = {0};
	size_t open;

	if (len == 0)
		return cast->failed;
	str_add(&text, cast->held, cast->n_held);
	str_add(&text, p, len);
	open = open_end(text.p, text.len);
	text.len -= open;
	memcpy(cast->held, text.p + text.len, open);
	cast->n_held = open;
	return text.len ? add_event(cast, "o", str_slice(&text)) : cast->failed;
}

int record_cast_resize(struct record_cast *cast, unsigned short rows, unsigned short columns)
{
	char size[16];

	snprintf(size, sizeof(size), "%ux%u", columns, rows);
	return add_event(cast, "r", slice_of(size));
}

static void end_cast(struct record_cast *cast)
{
	if (cast->n_held)
		(void)add_event(cast, "o",
			(struct slice){.p = cast->held, .len = cast->n_held}); /* the last */
	record_files_enter(cast->record, cast->name, &cast->digest, cast->bytes);
}

void record_cast_free(struct record_cast *cast)
{
	if (!cast)
		return;
	if (cast->record)
		end_cast(cast);
	scoped_close(&cast->fd);
	str_done(&cast->buf);
	free(cast->name);
	free(cast);
}
