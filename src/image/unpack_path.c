/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "image/unpack_internal.h"

static int add_part(struct unpack_path *path, const char *part, size_t len, struct err *err)
{
	if (len == 0 || (len == 1 && part[0] == '.'))
		return 0;
	if (len == 2 && part[0] == '.' && part[1] == '.')
		return err_set(err, -EBADMSG, "it climbs out of its folder");
	if (len > NAME_MAX)
		return err_set(
			err, -ENAMETOOLONG, "a part of it is longer than %d bytes", NAME_MAX);
	if (path->len + 1 + len > UNPACK_PATH_MAX)
		return err_set(err, -ENAMETOOLONG, "it is longer than %d bytes", UNPACK_PATH_MAX);
	if (path->len)
		path->text[path->len++] = '/';
	path->name = path->text + path->len;
	memcpy(path->name, part, len);
	path->len += len;
	path->text[path->len] = '\0';
	return 0;
}

/* An absolute one is meant from the root that it is unpacked into. */
int unpack_path_set(struct unpack_path *path, const char *given, struct err *err)
{
	int r = 0;

	path->len = 0;
	path->text[0] = '\0';
	path->name = path->text;
	while (r == 0 && *given) {
		size_t len = strcspn(given, "/");

		r = add_part(path, given, len, err);
		given += len + (given[len] == '/');
	}
	return r;
}
