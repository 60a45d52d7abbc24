/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/apply_work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/mem.h"

bool apply_work_is_folder(const struct change *c)
{
	return S_ISDIR(c->after.mode ? c->after.mode : c->before.mode);
}

bool apply_work_has_new_content(const struct change *c)
{
	return S_ISREG(c->after.mode) &&
	       !(c->before.sha256[0] && strcmp(c->before.sha256, c->after.sha256) == 0);
}

bool apply_work_is_new_folder(const struct change *c)
{
	return c->kind == CHANGE_ADDED && apply_work_is_folder(c);
}

/* The disk or this process is at its end: going on would only repeat it. */
static bool is_fatal(int r)
{
	switch (-r) {
	case ENOSPC:
	case EDQUOT:
	case EIO:
	case EROFS:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return true;
	default:
		return false;
	}
}

static char *reason_text(int r)
{
	switch (-r) {
	case EEXIST:
		return mem_dup("something else is there on the host");
	case ENOTEMPTY:
		return mem_dup("the host's folder holds more than the sandbox saw");
	case ELOOP:
		return mem_dup("a link is in the way on the host");
	case EXDEV:
		return mem_dup("another file system is mounted there on the host");
	case ENOENT:
		return mem_dup("its folder is not there on the host");
	case ENOTDIR:
		return mem_dup("its folder is no folder on the host");
	case EAGAIN:
		return mem_dup("the host changed it at this very moment");
	case ENODATA:
		return mem_dup("the sandbox changed it at this very moment");
	case ESTALE:
		return mem_dup("its data was below and is gone");
	default:
		return mem_dup(strerror(-r));
	}
}

void apply_work_set_result(struct apply_item *item, enum apply_result result, char *text)
{
	if (text) {
		free(item->text);
		item->text = text;
	}
	item->result = result;
}

void apply_work_add_loss(struct str *lost, const char *what)
{
	str_puts(lost, lost->len > 0 ? "; " : "without ");
	str_puts(lost, what);
}

void apply_work_set_done(struct apply *a, size_t i, struct str *lost)
{
	struct apply_item *item = &a->items[i];
	bool less = lost && lost->len > 0;

	apply_work_set_result(item, less ? APPLY_LESS : APPLY_DONE, less ? str_take(lost) : NULL);
}

int apply_work_settle(struct apply *a, size_t i, int r)
{
	if (r >= 0)
		return 0;
	apply_work_set_result(&a->items[i], APPLY_REFUSED, reason_text(r));
	return is_fatal(r) ? r : 0;
}

char *apply_work_now_at(const struct apply *a, const char *path)
{
	char *now = moves_find(a->moves, path);

	return now ? now : mem_dup(path);
}

void apply_work_add_stuck(struct apply *a, const struct change *c)
{
	*map_slot(a->stuck_to, slice_of(c->path)) = c->path;
	*map_slot(a->stuck_from, slice_of(c->from)) = c->path;
}

const char *apply_work_find_stuck(const struct apply *a, size_t i)
{
	const char *path = a->changes->items[i].path, *end = path + strlen(path), *found = NULL;

	for (const char *at = path; map_len(a->stuck_to) > 0 && !found && at < end;) {
		const char *slash = strchr(at, '/');
		struct slice place = {.p = path, .len = (size_t)((slash ? slash : end) - path)};
		scoped_mem char *old = moves_find_old(a->moves, place);

		found = slash ? map_find(a->stuck_to, place) : NULL;
		if (!found)
			found = map_find(a->stuck_from, slice_of(old));
		at = slash ? slash + 1 : end;
	}
	return found;
}

bool apply_work_is_done(const struct apply *a, size_t i)
{
	return a->items[i].result == APPLY_DONE || a->items[i].result == APPLY_LESS;
}

bool apply_work_is_stopped(const struct apply *a)
{
	return a->options->stop && *a->options->stop;
}

const char *apply_work_base(const struct change *c)
{
	return c->from ? c->from : c->path;
}
