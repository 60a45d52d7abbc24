/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/create_within.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "spec/spec_within.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define FILE_MAX (1u << 20)

static bool is_beneath_any(const char *path, const json_t *roots)
{
	for (size_t i = 0; i < json_array_size(roots); i++) {
		const char *root = json_string_value(json_array_get(roots, i));

		if (root && path_is_beneath(slice_of(path), slice_of(root)))
			return true;
	}
	return false;
}

static int forbid_folder(const char *key, const char *path, struct err *err)
{
	return err_set(err, -EPERM,
		"%s: this account may not use '%s' of the host" SPEC_WITHIN_WHO("host_roots"), key,
		path);
}

static int check_folders(const struct spec *spec, const json_t *roots, struct err *err)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (!is_beneath_any(spec->mounts[i].host, roots))
			return forbid_folder("mounts", spec->mounts[i].host, err);
	if (spec->rootfs && !is_beneath_any(spec->rootfs, roots))
		return forbid_folder("rootfs", spec->rootfs, err);
	return 0;
}

/* An image of this computer is a path too: with ".." in it a prefix says nothing of where it is. */
static bool climbs(const char *path)
{
	for (const char *part = path; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == 0))
			return true;
	}
	return false;
}

/* Whether what is there of a path lies where the account may look. */
static bool is_missing_beneath(const char *path, const json_t *roots)
{
	scoped_mem char *text = mem_dup(path);
	scoped_mem char *real = NULL;
	struct stat st;
	char *slash;

	while (lstat(text, &st) < 0 && (slash = strrchr(text, '/')) && slash != text)
		*slash = '\0';
	real = realpath(text, NULL);
	return !climbs(path) && real && is_beneath_any(real, roots);
}

static int check_image(const struct spec *spec, const json_t *images, struct err *err)
{
	if (spec->image && climbs(spec->image))
		return err_set(err, -EPERM, "image: '%s': name it without '..'", spec->image);
	for (size_t i = 0; spec->image && i < json_array_size(images); i++) {
		const char *prefix = json_string_value(json_array_get(images, i));

		if (prefix && strncmp(spec->image, prefix, strlen(prefix)) == 0)
			return 0;
	}
	return spec->image
	               ? err_set(err, -EPERM,
				 "image: this account may not use '%s'" SPEC_WITHIN_WHO("images"),
				 spec->image)
	               : 0;
}

/* The file's object, the caller's. */
static int read_within(const char *file, json_t **ret, struct err *err)
{
	scoped_str struct str text = {0};
	int r = fdio_read_file(AT_FDCWD, file, FILE_MAX, &text);

	if (r < 0)
		return err_set(err, r, "read '%s': %m", file);
	*ret = json_loadb(text.p, text.len, 0, NULL);
	if (json_is_object(*ret))
		return 0;
	json_decref(*ret);
	return err_set(err, -EINVAL, "'%s' holds no JSON object", file);
}

static bool is_private(const json_t *within)
{
	return json_is_true(json_object_get(within, "private"));
}

int create_within_check(const struct spec *spec, const char *file, struct err *err)
{
	json_t *within = NULL;
	int r = read_within(file, &within, err);

	if (r < 0)
		return r;
	r = check_folders(spec, json_object_get(within, "host_roots"), err);
	if (r == 0)
		r = check_image(spec, json_object_get(within, "images"), err);
	if (r == 0 && !is_private(within))
		r = spec_within_network(&spec->network, err);
	if (r == 0 && spec->record_raw && !json_is_true(json_object_get(within, "raw")))
		r = err_set(err, -EPERM,
			"record_raw: this account's records are redacted" SPEC_WITHIN_WHO("raw"));
	json_decref(within);
	return r;
}

int create_within_missing(
	const char *key, const char *path, const char *file, int r, struct err *err)
{
	json_t *within = NULL;
	int failed = read_within(file, &within, err);

	if (failed < 0)
		return failed;
	if (is_missing_beneath(path, json_object_get(within, "host_roots")))
		err_set(err, r, "%s: '%s': %m", key, path);
	else
		r = forbid_folder(key, path, err);
	json_decref(within);
	return r;
}

int create_within_check_network(const struct spec_network *net, const char *file, struct err *err)
{
	json_t *within = NULL;
	int r = read_within(file, &within, err);

	if (r < 0)
		return r;
	if (!is_private(within))
		r = spec_within_network(net, err);
	json_decref(within);
	return r;
}

int create_within_check_private(const char *file, const char *key, struct err *err)
{
	json_t *within = NULL;
	int r = read_within(file, &within, err);

	if (r == 0 && !is_private(within))
		r = err_set(err, -EPERM,
			"%s: this account may not choose one" SPEC_WITHIN_WHO("private"), key);
	json_decref(within);
	return r;
}
