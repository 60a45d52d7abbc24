/* SPDX-License-Identifier: Apache-2.0 */
#include "image/reference.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

#define TEXT_MAX     4096
#define NAME_MAX_LEN 512

static const char *const file_transports[] = {"oci:", "oci-archive:", "docker-archive:"};

static int set_path(struct reference *ref, const char *text, const char *colon, struct err *err)
{
	if (!*text || colon == text || (colon && !colon[1]))
		return err_set(err, -EINVAL, "image '%s': want PATH or PATH:TAG", text);
	ref->kind = REFERENCE_PATH;
	ref->place = colon ? mem_printf("%.*s", (int)(colon - text), text) : mem_dup(text);
	ref->tag = colon ? mem_dup(colon + 1) : NULL;
	return 0;
}

/* PATH[:TAG]. A tag has no slash, so a path with a colon in it is written with one behind it, or without a tag. */
static const char *bare_tag(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon && strchr(colon, '/') ? NULL : colon;
}

static int check_name(const char *name, struct err *err)
{
	size_t len = strlen(name);

	if (len == 0 || len > NAME_MAX_LEN || !isalnum((unsigned char)name[0]))
		return err_set(err, -EINVAL,
			"image '%.100s' is no name of a registry; a file or folder is written as "
			"./NAME",
			name);
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("._-/:@", name[i]))
			return err_set(err, -EINVAL,
				"image '%.100s' is no name of a registry: it has '%c' in it", name,
				isprint((unsigned char)name[i]) ? name[i] : '?');
	return 0;
}

/* NAME[:TAG][@DIGEST]: skopeo does not take both, and the digest says all. */
static int set_registry(struct reference *ref, const char *name, struct err *err)
{
	const char *at = strchr(name, '@'), *colon;
	size_t len = at ? (size_t)(at - name) : 0;
	int r = check_name(name, err);

	if (r < 0)
		return r;
	ref->kind = REFERENCE_REGISTRY;
	if (!at) {
		ref->place = mem_printf("docker://%s", name);
		return 0;
	}
	colon = memrchr(name, ':', len);
	if (colon && !memchr(colon, '/', len - (size_t)(colon - name)))
		len = (size_t)(colon - name);
	ref->place = mem_printf("docker://%.*s%s", (int)len, name, at);
	return 0;
}

int reference_parse(struct reference *ref, const char *text, struct err *err)
{
	*ref = (struct reference){0};
	if (!*text || strlen(text) > TEXT_MAX)
		return err_set(err, -EINVAL, "an image is named by 1 to %d bytes", TEXT_MAX);
	for (size_t i = 0; i < sizeof(file_transports) / sizeof(file_transports[0]); i++) {
		size_t len = strlen(file_transports[i]);

		/* As other tools have it: the path ends at the first colon, a whole name may follow. */
		if (strncmp(text, file_transports[i], len) == 0)
			return set_path(ref, text + len, strchr(text + len, ':'), err);
	}
	if (strncmp(text, "docker://", strlen("docker://")) == 0)
		return set_registry(ref, text + strlen("docker://"), err);
	if (text[0] == '/' || strncmp(text, "./", 2) == 0 || strncmp(text, "../", 3) == 0)
		return set_path(ref, text, bare_tag(text), err);
	return set_registry(ref, text, err);
}

void reference_done(struct reference *ref)
{
	free(ref->place);
	free(ref->tag);
	*ref = (struct reference){0};
}
