/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/watch_line.h"

#include <sys/stat.h>

#include "manifest/manifest_words.h"
#include "util/clock.h"
#include "util/path.h"

_Static_assert(WATCH_OWNER_SIZE == MANIFEST_OWNER_SIZE, "one text");

const char *watch_line_word(enum watch_kind kind)
{
	static const char *const words[WATCH_N_KINDS] = {
		[WATCH_CREATED] = "created",
		[WATCH_WRITTEN] = "written",
		[WATCH_RENAMED] = "renamed",
		[WATCH_DELETED] = "deleted",
		[WATCH_MODE] = "mode",
		[WATCH_OVERFLOW] = "overflow",
		[WATCH_UNWATCHED] = "unwatched",
	};

	return words[kind];
}

void watch_line_add_path(const struct watch_line *line, const char *path, struct str *out)
{
	if (!path)
		return;
	str_puts(out, line->base);
	if (*path && out->len > 0 && out->p[out->len - 1] != '/')
		str_putc(out, '/');
	str_puts(out, path);
}

static uint32_t inner(const struct watch_line *line, uint32_t id)
{
	return id - line->id_base < line->id_count ? id - line->id_base : id;
}

void watch_line_owner(const struct watch_line *line, const struct watch_change *change,
	char ret[WATCH_OWNER_SIZE])
{
	manifest_owner_text(inner(line, change->uid), inner(line, change->gid), ret);
}

int64_t watch_line_at_ms(const struct watch_change *change)
{
	return clock_wall_ms() - (clock_mono_ns() - change->at_ns) / CLOCK_NS_PER_MS;
}

static void write_path(
	struct jsonw *j, const char *key, const struct watch_line *line, const char *path)
{
	scoped_str struct str whole = {0};

	watch_line_add_path(line, path, &whole);
	if (whole.len > 0)
		jsonw_kslice(j, key, str_slice(&whole));
}

static void write_what(
	struct jsonw *j, const struct watch_line *line, const struct watch_change *change)
{
	char owner[WATCH_OWNER_SIZE];

	jsonw_ktext(j, "type", manifest_type_word(change->mode));
	if (S_ISREG(change->mode))
		jsonw_kint(j, "size", change->size);
	if (change->kind == WATCH_DELETED || change->kind == WATCH_UNWATCHED)
		return;
	if (!S_ISLNK(change->mode))
		manifest_write_mode(j, "mode", change->mode);
	watch_line_owner(line, change, owner);
	jsonw_ktext(j, "owner", owner);
	if (S_ISREG(change->mode) && change->links > 1)
		jsonw_kint(j, "links", (int64_t)change->links);
}

void watch_line_write(
	const struct watch_line *line, const struct watch_change *change, struct str *out)
{
	struct jsonw j = jsonw_to(out);
	char at[CLOCK_TEXT_LEN];

	clock_format(watch_line_at_ms(change), at);
	jsonw_object(&j);
	jsonw_ktext(&j, "at", at);
	jsonw_ktext(&j, "change", watch_line_word(change->kind));
	write_path(&j, "path", line, change->path);
	write_path(&j, "from", line, change->from);
	if (change->kind != WATCH_OVERFLOW)
		write_what(&j, line, change);
	if (change->entries > 0)
		jsonw_kint(&j, "entries", (int64_t)change->entries);
	if (change->replaced)
		jsonw_kbool(&j, "replaced", true);
	if (change->is_writing)
		jsonw_kbool(&j, "writing", true);
	if (change->reason)
		jsonw_ktext(&j, "reason", change->reason);
	jsonw_object_end(&j);
}
