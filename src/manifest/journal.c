/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "manifest/change_set.h"
#include "manifest/moves.h"
#include "util/base64.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/str.h"

#define NAME       "journal.jsonl"
#define FILE_MAX   (1LL << 30)
#define MOUNTS_MAX CHANGE_SET_LAYERS_MAX

struct paths {
	struct journal_entry *last[2]; /* what was put there, what was taken away */
	char *content;
};

struct journal {
	char *dir;
	int fd;    /* opened at the first line written */
	bool torn; /* the last line that is there has no end */
	struct map *paths;
	struct mount {
		struct moves *moves;
		struct map *temporaries; /* as a set */
	} mounts[MOUNTS_MAX];
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

static struct mount *find_mount(struct journal *journal, int n)
{
	struct mount *m = n >= 0 && n < MOUNTS_MAX ? &journal->mounts[n] : NULL;

	if (m && !m->moves) {
		m->moves = moves_new();
		m->temporaries = map_new();
	}
	return m;
}

static void remember_rename(struct journal *journal, int n, const char *from, const char *to)
{
	struct mount *m = find_mount(journal, n);

	if (m)
		moves_add(m->moves, from, to);
}

static void remember_temporary(struct journal *journal, int n, struct slice path)
{
	struct mount *m = find_mount(journal, n);

	if (m)
		*map_slot(m->temporaries, path) = m;
}

static void forget_temporaries(struct journal *journal, int n)
{
	struct mount *m = find_mount(journal, n);

	if (!m)
		return;
	map_free(m->temporaries);
	m->temporaries = map_new();
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

static void read_rename(struct journal *journal, const json_t *line, int n)
{
	scoped_str struct str from = {0}, to = {0};

	if (get_bytes(line, "from", "from_b64", &from) &&
		get_bytes(line, "path", "path_b64", &to) && from.len > 0 && to.len > 0)
		remember_rename(journal, n, from.p, to.p);
}

static void read_temporary(struct journal *journal, const json_t *line, int n)
{
	scoped_str struct str path = {0};

	if (get_bytes(line, "path", "path_b64", &path))
		remember_temporary(journal, n, str_slice(&path));
}

static void read_line(struct journal *journal, struct slice text)
{
	json_error_t why;
	json_t *line = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, &why);
	const char *act = json_string_value(json_object_get(line, "act"));
	int n = (int)json_integer_value(json_object_get(line, "n"));

	if (act && strcmp(act, "renamed") == 0)
		read_rename(journal, line, n);
	else if (act && strcmp(act, "temporary") == 0)
		read_temporary(journal, line, n);
	else if (act && strcmp(act, "tidy") == 0)
		forget_temporaries(journal, n);
	else if (act)
		read_act(journal, line, n, act);
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

int journal_copy(const char *from_dir, const char *to_dir, struct err *err)
{
	scoped_mem char *from = mem_printf("%s/" NAME, from_dir);
	scoped_mem char *to = mem_printf("%s/" NAME, to_dir);
	scoped_str struct str text = {0};
	int r = fdio_read_file(AT_FDCWD, from, FILE_MAX, &text);

	if (r == -ENOENT || (r == 0 && text.len == 0))
		return 0;
	if (r == 0)
		r = fdio_replace(AT_FDCWD, to, text.p, text.len, 0600);
	return r < 0 ? err_set(err, r, "copy '%s': %m", from) : 0;
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
	for (size_t i = 0; i < MOUNTS_MAX; i++) {
		moves_free(journal->mounts[i].moves);
		map_free(journal->mounts[i].temporaries);
	}
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

char *journal_moved(const struct journal *journal, int n, const char *path)
{
	char *now;

	if (n < 0 || n >= MOUNTS_MAX || !journal->mounts[n].moves)
		return NULL;
	now = moves_find(journal->mounts[n].moves, path);
	/* In a folder that was renamed, a file's redirect is relative to where the folder is now. */
	return now ? now : moves_find_since(journal->mounts[n].moves, path);
}

bool journal_next_temporary(const struct journal *journal, int n, size_t *i, struct slice *ret_path)
{
	void *value;

	if (n < 0 || n >= MOUNTS_MAX || !journal->mounts[n].temporaries)
		return false;
	return map_next(journal->mounts[n].temporaries, i, ret_path, &value);
}

bool journal_is_temporary(const struct journal *journal, int n, struct slice path)
{
	return n >= 0 && n < MOUNTS_MAX && journal->mounts[n].temporaries &&
	       map_find(journal->mounts[n].temporaries, path);
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

int journal_add_rename(struct journal *journal, int n, const char *from, const char *to)
{
	scoped_str struct str line = {0};
	struct jsonw j = jsonw_to(&line);

	jsonw_object(&j);
	jsonw_ktext(&j, "act", "renamed");
	jsonw_kint(&j, "n", n);
	jsonw_kslice(&j, "from", slice_of(from));
	jsonw_kslice(&j, "path", slice_of(to));
	jsonw_object_end(&j);
	remember_rename(journal, n, from, to);
	return write_line(journal, &line);
}

int journal_add_temporary(struct journal *journal, int n, const char *path)
{
	scoped_str struct str line = {0};
	struct jsonw j = jsonw_to(&line);

	jsonw_object(&j);
	jsonw_ktext(&j, "act", "temporary");
	jsonw_kint(&j, "n", n);
	jsonw_kslice(&j, "path", slice_of(path));
	jsonw_object_end(&j);
	remember_temporary(journal, n, slice_of(path));
	return write_line(journal, &line);
}

int journal_add_tidy(struct journal *journal, int n)
{
	scoped_str struct str line = {0};
	struct mount *m = find_mount(journal, n);

	if (!m || map_len(m->temporaries) == 0)
		return 0;
	str_printf(&line, "{\"act\":\"tidy\",\"n\":%d}", n);
	forget_temporaries(journal, n);
	return write_line(journal, &line);
}

int journal_sync(struct journal *journal)
{
	if (journal->fd < 0)
		return 0;
	return fdatasync(journal->fd) < 0 ? -errno : 0;
}
