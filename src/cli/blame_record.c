/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/blame_record.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define SEGMENT_MAX (256U << 20) /* bytes of one trace file: a new one begins at 64 MiB */

/* ---- paths ---- */

void blame_record_add(struct blame_targets *targets, const char *guest, const char *mode)
{
	for (size_t i = 0; i < targets->n; i++)
		if (strcmp(targets->items[i].guest, guest) == 0)
			return;
	targets->items = mem_grow(targets->items, targets->n + 1, sizeof(struct blame_target));
	targets->items[targets->n++] = (struct blame_target){.guest = mem_dup(guest), .mode = mode};
}

void blame_record_done(struct blame_targets *targets)
{
	for (size_t i = 0; i < targets->n; i++)
		free(targets->items[i].guest);
	free(targets->items);
	*targets = (struct blame_targets){0};
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* The mount that holds a path inside: the deepest, of equals the last. */
static const json_t *find_mount(const json_t *mounts, struct slice guest)
{
	const json_t *mount, *best = NULL;
	size_t i, best_len = 0;

	json_array_foreach(mounts, i, mount)
	{
		struct slice at = slice_of(text_of(mount, "guest"));

		if (at.len > 0 && at.len >= best_len && path_is_beneath(guest, at)) {
			best = mount;
			best_len = at.len;
		}
	}
	return best;
}

void blame_record_map(const json_t *spec, const char *host, struct blame_targets *targets)
{
	const json_t *mounts = json_object_get(spec, "mounts"), *mount;
	size_t i;

	json_array_foreach(mounts, i, mount)
	{
		struct slice below = slice_of(text_of(mount, "host"));
		const char *mode = text_of(mount, "mode");
		scoped_str struct str guest = {0};

		if (below.len == 0 || strcmp(mode, "ro") == 0 ||
			!path_is_beneath(slice_of(host), below))
			continue;
		path_resolve(slice_of(text_of(mount, "guest")),
			slice_of(host[below.len] == '/' ? host + below.len + 1 : host + below.len),
			&guest);
		if (find_mount(mounts, str_slice(&guest)) == mount)
			blame_record_add(targets, guest.p, mode);
	}
}

/* ---- bytes to look for ---- */

/* The longest part of a name that stands in JSON as it is. */
static struct slice plain_part(const char *name)
{
	struct slice best = {0}, at = {.p = name};

	for (const char *p = name;; p++) {
		bool is_plain = isalnum((unsigned char)*p) || (*p && strchr("._-+ @~", *p));

		if (is_plain) {
			at.len++;
			continue;
		}
		if (at.len > best.len)
			best = at;
		if (!*p)
			return best;
		at = (struct slice){.p = p + 1};
	}
}

static bool has(const char *text, size_t len, struct slice needle)
{
	return memmem(text, len, needle.p, needle.len) != NULL;
}

/* Its name, or a rename that led to it or to a folder above it. */
static bool speaks_of(const char *text, size_t len, const char *guest)
{
	const char *slash = strrchr(guest, '/');
	struct slice name = plain_part(slash + 1);

	if (name.len == 0 || has(text, len, name))
		return true;
	for (const char *end = slash; end > guest;) {
		scoped_str struct str needle = {0};
		struct jsonw j = jsonw_to(&needle);

		str_puts(&needle, "\"to\":");
		jsonw_slice(&j, (struct slice){.p = guest, .len = (size_t)(end - guest)});
		if (has(text, len, str_slice(&needle)))
			return true;
		end = memrchr(guest, '/', (size_t)(end - guest));
	}
	return false;
}

static int file_speaks(const char *path, const struct blame_targets *targets)
{
	scoped_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	scoped_str struct str text = {0};
	int r = fd < 0 ? -errno : fdio_read_all(fd, SEGMENT_MAX, &text);

	if (r < 0)
		return r;
	for (size_t i = 0; text.len > 0 && i < targets->n; i++)
		if (speaks_of(text.p, text.len, targets->items[i].guest))
			return 1;
	return 0;
}

int blame_record_mentions(const char *dir, const struct blame_targets *targets)
{
	for (unsigned segment = 1;; segment++) {
		scoped_mem char *path = mem_printf("%s/trace-%05u.jsonl", dir, segment);
		int r = file_speaks(path, targets);

		if (r != 0)
			return r == -ENOENT ? 0 : r;
	}
}
