/* SPDX-License-Identifier: Apache-2.0 */
#include "server/webhook_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/mem.h"
#include "util/name_pattern.h"
#include "util/path.h"
#include "util/scoped.h"

#define WILD "*?[\\"

void webhook_paths_done(struct webhook_paths *paths)
{
	while (paths->n > 0)
		free(paths->items[--paths->n]);
}

void webhook_paths_copy(const struct webhook_paths *from, struct webhook_paths *ret)
{
	ret->n = from->n;
	for (size_t i = 0; i < from->n; i++)
		ret->items[i] = mem_dup(from->items[i]);
}

/* The next name of a path, without slashes. */
static bool next_name(const char **at, struct slice *ret)
{
	*at += strspn(*at, "/");
	*ret = (struct slice){.p = *at, .len = strcspn(*at, "/")};
	*at += ret->len;
	return ret->len > 0;
}

static bool is_good(const char *path)
{
	struct slice name;

	if (!path || path[0] != '/' || strlen(path) > NAME_PATTERN_MAX)
		return false;
	while (next_name(&path, &name))
		if (slice_is(name, ".") || slice_is(name, ".."))
			return false;
	return true;
}

int webhook_paths_read(const json_t *list, struct webhook_paths *ret, struct err *err)
{
	*ret = (struct webhook_paths){0};
	if (!list || json_is_null(list))
		return 0;
	if (!json_is_array(list) || json_array_size(list) == 0 ||
		json_array_size(list) > WEBHOOK_PATHS_MAX)
		return err_set(err, -EINVAL, "member 'paths': want a list of 1 to %d patterns",
			WEBHOOK_PATHS_MAX);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);
		const char *path = json_string_value(item);

		if (!is_good(path) || strlen(path) != json_string_length(item)) {
			webhook_paths_done(ret);
			return err_set(err, -EINVAL,
				"member 'paths': want paths inside the sandbox such as "
				"\"/workspace/**\": from '/' on, without '.' and '..', of at most "
				"%d bytes",
				NAME_PATTERN_MAX);
		}
		ret->items[ret->n++] = mem_dup(path);
	}
	return 0;
}

bool webhook_paths_have(const struct webhook_paths *paths, struct slice path)
{
	for (size_t i = 0; i < paths->n; i++) {
		scoped_mem char *below = strpbrk(paths->items[i], WILD)
		                                 ? NULL
		                                 : mem_printf("%s/**", paths->items[i]);

		if (name_pattern_matches(slice_of(below ? below : paths->items[i]), path))
			return true;
	}
	return false;
}

static bool is_wild(struct slice name)
{
	for (size_t i = 0; i < name.len; i++)
		if (strchr(WILD, name.p[i]))
			return true;
	return false;
}

static void add_base(const char *path, struct str *out)
{
	struct slice name;

	while (next_name(&path, &name) && !is_wild(name)) {
		str_putc(out, '/');
		str_add(out, name.p, name.len);
	}
	if (out->len == 0)
		str_putc(out, '/');
}

/* Whether it is below another, or the same as an earlier one. */
static bool is_covered(const struct str *bases, size_t n, size_t i)
{
	for (size_t k = 0; k < n; k++) {
		bool is_same = slice_eq(str_slice(&bases[k]), str_slice(&bases[i]));

		if (k != i && path_is_beneath(str_slice(&bases[i]), str_slice(&bases[k])) &&
			(!is_same || k < i))
			return true;
	}
	return false;
}

size_t webhook_paths_bases(const struct webhook_paths *paths, struct str bases[WEBHOOK_PATHS_MAX])
{
	struct str all[WEBHOOK_PATHS_MAX] = {0};
	size_t n = 0;

	for (size_t i = 0; i < paths->n; i++)
		add_base(paths->items[i], &all[i]);
	for (size_t i = 0; i < paths->n; i++)
		if (!is_covered(all, paths->n, i)) {
			bases[n] = (struct str){0};
			str_add(&bases[n++], all[i].p, all[i].len);
		}
	for (size_t i = 0; i < paths->n; i++)
		str_done(&all[i]);
	return n;
}
