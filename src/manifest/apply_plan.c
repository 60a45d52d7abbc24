/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/apply_plan.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "manifest/apply_work.h"
#include "manifest/runs_on_host.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"

static bool is_beneath(const char *path, const char *folder)
{
	if (strcmp(folder, ".") == 0)
		return true;
	return path_is_beneath(slice_of(path), slice_of(folder));
}

bool apply_plan_names(const struct change *change, const char *path)
{
	bool went = change->kind == CHANGE_RENAMED || change->kind == CHANGE_REMOVED;

	return is_beneath(change->path, path) ||
	       (went && change->from && is_beneath(change->from, path));
}

/* A file of a skipped folder is taken when that folder, or something in it, is named. */
static bool names_skipped(const struct change *c, const char *path)
{
	scoped_mem char *folder = mem_copy(c->path, c->skipped_len);

	return apply_plan_names(c, path) && is_beneath(path, folder);
}

/* What the host would run is taken when it is named itself, or a folder that is all of that kind. */
static bool names_running(const struct change *c, const char *path)
{
	return apply_plan_names(c, path) &&
	       (strcmp(c->path, path) == 0 || runs_on_host_reason(path, true));
}

static bool is_any(const struct change *c, const struct apply_options *options,
	bool (*names)(const struct change *, const char *))
{
	for (size_t i = 0; i < options->n_paths; i++)
		if (names(c, options->paths[i]))
			return true;
	return false;
}

static void decide(struct apply_item *item, enum apply_result result, char *text)
{
	item->result = result;
	item->text = text;
}

bool apply_plan_is_git(const struct change *c)
{
	return c->skipped_len >= 4 && memcmp(c->path + c->skipped_len - 4, ".git", 4) == 0;
}

/* Nobody names each package: who names the folder of what others brought runs what is in it, whatever that is. */
static bool comes_with_its_folder(const struct change *c)
{
	return runs_on_host_is_dependency(c->path);
}

/* What only comes over when it is named. */
static bool stays_unless_named(
	const struct change *c, const struct apply_options *options, struct apply_item *item)
{
	const char *reason = changes_runs_on_host(c);

	if ((c->flags & CHANGE_RUNS_ON_HOST) && !comes_with_its_folder(c) &&
		!is_any(c, options, names_running)) {
		decide(item, APPLY_LEFT,
			mem_printf("the host would run it (%s): name it to take it over", reason));
		return true;
	}
	if (!(c->flags & CHANGE_SKIPPED))
		return false;
	if (apply_plan_is_git(c) && !(c->flags & CHANGE_RUNS_ON_HOST)) {
		decide(item, APPLY_LEFT,
			mem_dup("files of .git do not come over one by one: --branch NAME "
				"brings the commits"));
		return true;
	}
	if (is_any(c, options, names_skipped))
		return false;
	decide(item, APPLY_LEFT, mem_dup("name its folder to take it over"));
	return true;
}

static const char *special_word(mode_t mode)
{
	if (S_ISFIFO(mode))
		return "a pipe";
	if (S_ISSOCK(mode))
		return "a socket";
	if (S_ISCHR(mode) || S_ISBLK(mode))
		return "a device";
	return NULL;
}

/* More than another name, which the owner of the folder may give. */
static bool writes_to_it(const struct change *c)
{
	if (c->kind == CHANGE_RENAMED)
		return apply_work_has_new_content(c) || ((c->before.mode ^ c->after.mode) & 07777);
	return c->kind == CHANGE_CHANGED || c->kind == CHANGE_MODE;
}

/* Why it must not be touched, to be freed; NULL: it may be. */
static char *find_objection(
	const struct changes *changes, const struct change *c, const struct apply_options *options)
{
	bool others = writes_to_it(c) && c->before.uid != changes->layer->owner_uid;

	if (c->flags & CHANGE_LOST)
		return mem_dup(changes->is_partial ? "where its data lies could not be read"
						   : "its data was below and is gone");
	if ((c->flags & CHANGE_HOST_CHANGED) && !options->force)
		return mem_dup("the host has changed it meanwhile: `apply --force` goes over it");
	if (others && !options->force)
		return mem_printf("belongs to another user (%u) on the host", c->before.uid);
	/* What is new may be half of a rename, and what goes away all that is left of a file. */
	if (changes->is_partial && !options->force)
		return mem_dup("not all that the sandbox left could be read: `apply --force` takes "
			       "over what could");
	if ((c->kind == CHANGE_RENAMED || changes_is_far(c)) && options->is_live)
		return mem_dup("renamed, and the sandbox may go on: `cloche rm` it first, its "
			       "changes stay");
	return NULL;
}

static void plan_one(const struct changes *changes, const struct change *c,
	const struct apply_options *options, struct apply_item *item)
{
	const char *special = special_word(c->after.mode);
	scoped_mem char *objection = find_objection(changes, c, options);

	item->must_stay = objection != NULL;
	if (options->n_paths > 0 && !is_any(c, options, apply_plan_names))
		decide(item, APPLY_NOT_NAMED, NULL);
	else if (stays_unless_named(c, options, item))
		return;
	else if (special)
		decide(item, APPLY_DROPPED, mem_printf("%s is not taken over", special));
	else if (objection)
		decide(item, APPLY_REFUSED, take(&objection));
	else if (c->flags & CHANGE_HOST_CHANGED)
		item->text = mem_printf("over what the host changed meanwhile%s%s",
			c->before.sha256[0] ? ", sha256 " : "", c->before.sha256);
}

/* What files need that lie elsewhere below than where they are seen: while the sandbox runs all of them, else those
 * that do not come over, which a removal of what they were renamed from would leave nowhere but in the change set. */
static struct map *find_needed(
	const struct changes *changes, const struct apply_item *items, bool is_live)
{
	struct map *data = map_new();

	for (size_t i = 0; i < changes->n_items; i++) {
		const struct change *c = &changes->items[i];

		if (changes_is_far(c) && (is_live || items[i].result == APPLY_REFUSED))
			*map_slot(data, slice_of(c->data)) = c->path;
		if (c->was && items[i].result == APPLY_REFUSED)
			*map_slot(data, slice_of(c->was)) = c->path;
	}
	for (size_t i = 0; is_live && i < changes->n_leaning; i++)
		*map_slot(data, slice_of(changes->leaning[i].data)) = changes->leaning[i].path;
	return data;
}

static void guard_data(const struct changes *changes, struct apply_item *items, bool is_live)
{
	struct map *data = find_needed(changes, items, is_live);

	for (size_t i = 0; map_len(data) > 0 && i < changes->n_items; i++) {
		const struct change *c = &changes->items[i];
		const char *needed = map_find(data, slice_of(c->from ? c->from : c->path));

		if (!needed || c->kind == CHANGE_MODE || (!is_live && c->kind != CHANGE_REMOVED))
			continue;
		items[i].must_stay = true;
		if (items[i].result != APPLY_WAITING)
			continue;
		free(items[i].text);
		decide(&items[i], APPLY_REFUSED,
			mem_printf(is_live ? "the sandbox may go on and needs it for '%s': `cloche "
					     "rm` it first"
					   : "it became '%s', which is refused",
				needed));
	}
	map_free(data);
}

/* A new folder that would stand there empty, as all that is in it waits for its name, waits with it. */
static void leave_bare_folders(const struct changes *changes, struct apply_item *items)
{
	const char *next =
		""; /* what does not wait, behind it in the list: in it, if anything is */

	for (size_t i = changes->n_items; i > 0; i--) {
		const struct change *c = &changes->items[i - 1];
		bool is_new = (c->flags & CHANGE_QUIET) && c->kind == CHANGE_ADDED;

		if (is_new && items[i - 1].result == APPLY_WAITING &&
			!path_is_beneath(slice_of(next), slice_of(c->path)))
			decide(&items[i - 1], APPLY_NOT_NAMED, NULL);
		else if (items[i - 1].result != APPLY_LEFT &&
			 items[i - 1].result != APPLY_NOT_NAMED)
			next = c->path;
	}
}

struct apply_item *apply_plan_new(
	const struct changes *changes, const struct apply_options *options)
{
	struct apply_item *items = new0_n(struct apply_item, changes->n_items + 1);

	for (size_t i = 0; i < changes->n_items; i++)
		plan_one(changes, &changes->items[i], options, &items[i]);
	guard_data(changes, items, options->is_live);
	leave_bare_folders(changes, items);
	return items;
}

void apply_plan_free(struct apply_item *items, size_t n)
{
	for (size_t i = 0; items && i < n; i++)
		free(items[i].text);
	free(items);
}
