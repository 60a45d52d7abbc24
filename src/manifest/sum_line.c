/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/sum_line.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "manifest/manifest_internal.h"
#include "util/mem.h"

struct sum {
	struct slice hex, name;
};

/* A backslash before the line says that the name has \n, \r or \\ in the place of such a character. */
static char *unescape(struct slice name)
{
	scoped_str struct str out = {0};

	for (size_t i = 0; i < name.len; i++) {
		char c = name.p[i];

		if (c != '\\') {
			str_putc(&out, c);
			continue;
		}
		c = ++i < name.len ? name.p[i] : '\0';
		if (c != 'n' && c != 'r' && c != '\\')
			return NULL;
		str_putc(&out, c == 'n' ? '\n' : c == 'r' ? '\r' : c);
	}
	return str_take(&out);
}

static char *sum_name(struct slice name, bool is_escaped)
{
	char *path = is_escaped ? unescape(name) : mem_copy(name.p, name.len);
	size_t skip = 0;

	while (path && strncmp(path + skip, "./", 2) == 0)
		skip += 2;
	if (path && skip)
		memmove(path, path + skip, strlen(path + skip) + 1);
	return path;
}

/* The sum, a space, a space or '*', the name. */
static bool split_plain(struct slice line, struct sum *ret)
{
	if (line.len < DIGEST_HEX_LEN + 3 || line.p[DIGEST_HEX_LEN] != ' ' ||
		(line.p[DIGEST_HEX_LEN + 1] != ' ' && line.p[DIGEST_HEX_LEN + 1] != '*'))
		return false;
	*ret = (struct sum){.hex = {.p = line.p, .len = DIGEST_HEX_LEN},
		.name = {.p = line.p + DIGEST_HEX_LEN + 2, .len = line.len - DIGEST_HEX_LEN - 2}};
	return true;
}

/* "SHA256 (name) = sum", of which the name may hold anything. */
static bool split_tagged(struct slice line, struct sum *ret)
{
	static const char start[] = "SHA256 (", middle[] = ") = ";
	size_t n_start = sizeof(start) - 1, n_middle = sizeof(middle) - 1;
	struct slice head = {.p = line.p, .len = line.len - DIGEST_HEX_LEN};

	if (line.len < n_start + 1 + n_middle + DIGEST_HEX_LEN || !slice_starts(head, start) ||
		!slice_ends(head, middle))
		return false;
	*ret = (struct sum){.hex = {.p = head.p + head.len, .len = DIGEST_HEX_LEN},
		.name = {.p = head.p + n_start, .len = head.len - n_start - n_middle}};
	return true;
}

/* As sha256sum reads it: a comment, or nothing. */
static bool says_nothing(struct slice line)
{
	return line.len == 0 || line.p[0] == '#';
}

int sum_line_take(struct manifest *manifest, struct slice line)
{
	char hex[DIGEST_HEX_SIZE] = "";
	struct tree_entry *entry;
	bool is_escaped;
	struct sum sum;
	char *path;

	/* A line's end from elsewhere: in a name such a character is escaped. */
	if (slice_ends(line, "\r"))
		line.len--;
	if (says_nothing(line))
		return 0;
	is_escaped = line.p[0] == '\\';
	line.p += is_escaped;
	line.len -= is_escaped;
	if (memchr(line.p, '\0', line.len) ||
		(!split_tagged(line, &sum) && !split_plain(line, &sum)))
		return -EBADMSG;
	memcpy(hex, sum.hex.p, DIGEST_HEX_LEN);
	if (digest_from_hex(hex, (unsigned char[DIGEST_LEN]){0}) < 0)
		return -EBADMSG;
	path = sum_name(sum.name, is_escaped);
	if (!path)
		return -EBADMSG;
	entry = tree_add(&manifest->tree, path);
	entry->mode = S_IFREG;
	memcpy(entry->sha256, hex, sizeof(hex));
	manifest->all = manifest->all || scan_skipped_len(path) > 0;
	return 0;
}
