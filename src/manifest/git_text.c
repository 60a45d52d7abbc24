/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/git_text.h"

#include <errno.h>
#include <string.h>

#define SHA1_LEN   40
#define SHA256_LEN 64

static bool is_hex(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!(p[i] >= '0' && p[i] <= '9') && !(p[i] >= 'a' && p[i] <= 'f'))
			return false;
	return true;
}

bool git_text_is_id(struct slice text)
{
	return (text.len == SHA1_LEN || text.len == SHA256_LEN) && is_hex(text.p, text.len);
}

/* One part between slashes. */
static bool is_name_part(struct slice part)
{
	if (part.len == 0 || part.p[0] == '.' || part.p[0] == '-' || slice_ends(part, ".") ||
		slice_ends(part, ".lock"))
		return false;
	for (size_t i = 0; i < part.len; i++) {
		unsigned char c = (unsigned char)part.p[i];

		if (c <= ' ' || c == 0x7f || strchr("~^:?*[\\", c))
			return false;
		if (i > 0 &&
			((c == '.' && part.p[i - 1] == '.') || (c == '{' && part.p[i - 1] == '@')))
			return false;
	}
	return true;
}

bool git_text_is_ref_name(struct slice name)
{
	if (!slice_starts(name, "refs/") || name.len > GIT_TEXT_NAME_MAX)
		return false;
	for (size_t at = 0; at <= name.len;) {
		const char *slash = memchr(name.p + at, '/', name.len - at);
		size_t end = slash ? (size_t)(slash - name.p) : name.len;

		if (!is_name_part((struct slice){.p = name.p + at, .len = end - at}))
			return false;
		at = end + 1;
	}
	return true;
}

int git_text_parse_ref(struct slice text, struct git_text_ref *ret_ref)
{
	static const char link[] = "ref: ";
	struct git_text_ref ref = {0};

	if (slice_ends(text, "\n"))
		text.len--;
	if (slice_starts(text, link)) {
		text.p += sizeof(link) - 1;
		text.len -= sizeof(link) - 1;
		if (!git_text_is_ref_name(text))
			return -EBADMSG;
		memcpy(ref.name, text.p, text.len);
	} else {
		if (!git_text_is_id(text))
			return -EBADMSG;
		memcpy(ref.id, text.p, text.len);
	}
	*ret_ref = ref;
	return 0;
}

/* "9a3f... refs/heads/main" */
static int read_packed(struct slice line, const char *name, char ret_id[GIT_TEXT_ID_SIZE])
{
	const char *space = memchr(line.p, ' ', line.len);
	size_t n = strlen(name), id_len = space ? (size_t)(space - line.p) : 0;

	if (!space || line.len != id_len + 1 + n || memcmp(space + 1, name, n) != 0)
		return -ENOENT;
	if (!git_text_is_id((struct slice){.p = line.p, .len = id_len}))
		return -EBADMSG;
	memcpy(ret_id, line.p, id_len);
	ret_id[id_len] = '\0';
	return 0;
}

int git_text_find_packed(struct slice text, const char *name, char ret_id[GIT_TEXT_ID_SIZE])
{
	while (text.len > 0) {
		const char *end = memchr(text.p, '\n', text.len);
		size_t len = end ? (size_t)(end - text.p) : text.len;
		int r = read_packed((struct slice){.p = text.p, .len = len}, name, ret_id);

		if (r != -ENOENT)
			return r;
		len += end != NULL;
		text.p += len;
		text.len -= len;
	}
	return -ENOENT;
}

bool git_text_is_object_file(const char *name, bool is_pack)
{
	static const char start[] = "pack-", end[] = ".pack";
	struct slice text = slice_of(name);

	if (!is_pack)
		return (text.len == SHA1_LEN - 2 || text.len == SHA256_LEN - 2) &&
		       is_hex(text.p, text.len);
	if (!slice_starts(text, start) || !slice_ends(text, end) ||
		text.len < sizeof(start) + sizeof(end) - 2)
		return false;
	text.p += sizeof(start) - 1;
	text.len -= sizeof(start) + sizeof(end) - 2;
	return git_text_is_id(text);
}
