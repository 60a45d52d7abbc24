/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "util/base64.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/str.h"

#define NAME     "journal.jsonl"
#define FILE_MAX (256 << 20)

struct rename {
	int n;
	char *from, *to;
};

struct paths {
	struct journal_entry *last[2]; /* what was put there, what was taken away */
	char *content;
};

struct journal {
	char *dir;
	int fd;    /* opened at the first line written */
	bool torn; /* the last line that is there has no end */
	struct map *paths;
	struct rename *renames;
	size_t n_renames;
};

static const char *const act_names[] = {
	[JOURNAL_APPLIED] = "applied",
	[JOURNAL_DISCARDED] = "discarded",
	[JOURNAL_SEEN] = "seen",
};

static void make_key(struct str *key, int n, struct slice path)
{
	str_printf(key, "%d/", n);
	str_add(key, path.p, path.len);
}

static struct paths *find_paths(const struct journal *journal, int n, struct slice path)
{
	scoped_str struct str key = {0};

	make_key(&key, n, path);
	return map_find(journal->paths, str_slice(&key));
}

static void remember(
	struct journal *journal, int n, struct slice path, const struct journal_entry *entry)
{
	scoped_str struct str key = {0};
	struct paths *p;
	void **slot;

	make_key(&key, n, path);
	slot = map_slot(journal->paths, str_slice(&key));
	if (!*slot)
		*slot = new0(struct paths);
	p = *slot;
	if (entry->sha256[0]) {
		free(p->content);
		p->content = mem_dup(entry->sha256);
	}
	if (entry->act == JOURNAL_SEEN)
		return;
	if (!p->last[entry->removed])
		p->last[entry->removed] = new0(struct journal_entry);
	*p->last[entry->removed] = *entry;
}

static void remember_rename(struct journal *journal, int n, struct slice from, struct slice to)
{
	journal->renames =
		mem_grow(journal->renames, journal->n_renames + 1, sizeof(*journal->renames));
	journal->renames[journal->n_renames++] = (struct rename){
		.n = n, .from = mem_copy(from.p, from.len), .to = mem_copy(to.p, to.len)};
}

static bool get_bytes(const json_t *line, const char *key, const char *b64_key, struct str *out)
{
	const json_t *text = json_object_get(line, key), *b64 = json_object_get(line, b64_key);

	str_reset(out);
	if (json_is_string(b64))
		return base64_decode(slice_of(json_string_value(b64)), out) == 0;
	if (!json_is_string(text))
		return false;
	str_puts(out, json_string_value(text));
	return true;
}

static void get_hex(const json_t *line, const char *key, char ret[DIGEST_HEX_SIZE])
{
	const char *hex = json_string_value(json_object_get(line, key));
	unsigned char value[DIGEST_LEN];

	ret[0] = '\0';
	if (hex && digest_from_hex(hex, value) == 0)
		digest_hex(value, ret);
}

static void read_act(struct journal *journal, const json_t *line, int n, const char *act)
{
	scoped_str struct str path = {0};
	struct journal_entry entry = {0};

	if (!get_bytes(line, "path", "path_b64", &path))
		return;
	entry.removed = json_is_true(json_object_get(line, "removed"));
	get_hex(line, "state", entry.state);
	get_hex(line, "sha256", entry.sha256);
	for (size_t i = 0; i < sizeof(act_names) / sizeof(act_names[0]); i++) {
		if (strcmp(act, act_names[i]) != 0)
			continue;
		entry.act = (enum journal_act)i;
		remember(journal, n, str_slice(&path), &entry);
	}
}

static void read_line(struct journal *journal, struct slice text)
{
	json_error_t why;
	json_t *line = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, &why);
	const char *act = json_string_value(json_object_get(line, "act"));
	int n = (int)json_integer_value(json_object_get(line, "n"));

	if (act && strcmp(act, "renamed") == 0) {
		scoped_str struct str from = {0}, to = {0};

		if (get_bytes(line, "from", "from_b64", &from) &&
			get_bytes(line, "path", "path_b64", &to))
			remember_rename(journal, n, str_slice(&from), str_slice(&to));
	} else if (act) {
		read_act(journal, line, n, act);
	}
	json_decref(line);
}

/* Lines that cannot be read are passed over: a write that a power cut tore. What it would have said shows as
 * pending again, which a second apply settles. */
static void read_lines(struct journal *journal, struct slice text)
{
	while (text.len > 0) {
		const char *end = memchr(text.p, '\n', text.len);
		size_t len = end ? (size_t)(end - text.p) : text.len;

		if (end)
			read_line(journal, (struct slice){.p = text.p, .len = len});
		journal->torn = !end;
		text.p += len + (end ? 1 : 0);
		text.len -= len + (end ? 1 : 0);
	}
}

int journal_open(const char *dir, struct journal **ret_journal, struct err *err)
{
	scoped(journal) struct journal *journal = new0(struct journal);
	scoped_mem char *path = mem_printf("%s/" NAME, dir);
	scoped_str struct str text = {0};
	int r;

	journal->fd = -1;
	journal->dir = mem_dup(dir);
	journal->paths = map_new();
	r = fdio_read_file(AT_FDCWD, path, FILE_MAX, &text);
	if (r < 0 && r != -ENOENT)
		return err_set(err, r, "read '%s': %m", path);
	read_lines(journal, str_slice(&text));
	*ret_journal = take(&journal);
	return 0;
}

void journal_free(struct journal *journal)
{
	struct slice key;
	void *value;

	if (!journal)
		return;
	for (size_t i = 0; journal->paths && map_next(journal->paths, &i, &key, &value);) {
		struct paths *p = value;

		free(p->last[0]);
		free(p->last[1]);
		free(p->content);
		free(p);
	}
	map_free(journal->paths);
	for (size_t i = 0; i < journal->n_renames; i++) {
		free(journal->renames[i].from);
		free(journal->renames[i].to);
	}
	free(journal->renames);
	scoped_close(&journal->fd);
	free(journal->dir);
	free(journal);
}

const struct journal_entry *journal_find(
	const struct journal *journal, int n, struct slice path, bool removed)
{
	const struct paths *p = find_paths(journal, n, path);

	return p ? p->last[removed] : NULL;
}

const char *journal_find_content(const struct journal *journal, int n, struct slice path)
{
	const struct paths *p = find_paths(journal, n, path);

	return p ? p->content : NULL;
}

static bool is_below(struct slice path, const char *folder)
{
	size_t n = strlen(folder);

	return slice_starts(path, folder) && (path.len == n || path.p[n] == '/');
}

bool journal_moved(const struct journal *journal, int n, struct slice path, char **ret_path)
{
	scoped_str struct str now = {0};
	bool moved = false;

	str_add(&now, path.p, path.len);
	for (size_t i = 0; i < journal->n_renames; i++) {
		const struct rename *rn = &journal->renames[i];
		char *next;

		if (rn->n != n || !is_below(str_slice(&now), rn->from))
			continue;
		next = mem_printf("%s%s", rn->to, now.p + strlen(rn->from));
		str_reset(&now);
		str_puts(&now, next);
		free(next);
		moved = true;
	}
	if (moved)
		*ret_path = str_take(&now);
	return moved;
}

static int write_line(struct journal *journal, struct str *line)
{
	if (journal->fd < 0) {
		scoped_mem char *path = mem_printf("%s/" NAME, journal->dir);

		journal->fd =
			open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (journal->fd < 0)
			return -errno;
	}
	if (journal->torn && fdio_write_all(journal->fd, "\n", 1) < 0)
		return -EIO;
	journal->torn = false;
	str_putc(line, '\n');
	return fdio_write_all(journal->fd, line->p, line->len);
}

int journal_add(
	struct journal *journal, int n, struct slice path, const struct journal_entry *entry)
{
	scoped_str struct str line = {0};
	struct jsonw j = jsonw_to(&line);

	jsonw_object(&j);
	jsonw_ktext(&j, "act", act_names[entry->act]);
	jsonw_kint(&j, "n", n);
	jsonw_kslice(&j, "path", path);
	if (entry->removed)
		jsonw_kbool(&j, "removed", true);
	if (entry->state[0])
		jsonw_ktext(&j, "state", entry->state);
	if (entry->sha256[0])
		jsonw_ktext(&j, "sha256", entry->sha256);
	jsonw_object_end(&j);
	remember(journal, n, path, entry);
	return write_line(journal, &line);
}

int journal_add_rename(struct journal *journal, int n, struct slice from, struct slice to)
{
	scoped_str struct str line = {0};
	struct jsonw j = jsonw_to(&line);

	jsonw_object(&j);
	jsonw_ktext(&j, "act", "renamed");
	jsonw_kint(&j, "n", n);
	jsonw_kslice(&j, "from", from);
	jsonw_kslice(&j, "path", to);
	jsonw_object_end(&j);
	remember_rename(journal, n, from, to);
	return write_line(journal, &line);
}

int journal_sync(struct journal *journal)
{
	if (journal->fd < 0)
		return 0;
	return fdatasync(journal->fd) < 0 ? -errno : 0;
}
