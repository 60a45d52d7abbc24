/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a journal: lines of JSON, only ever added. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "manifest/journal_internal.h"
#include "util/base64.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/path.h"

#define NAME     "journal.jsonl"
#define FILE_MAX (1LL << 30)

static const char *const act_names[] = {
	[JOURNAL_APPLIED] = "applied",
	[JOURNAL_DISCARDED] = "discarded",
	[JOURNAL_SEEN] = "seen",
	[JOURNAL_MADE] = "made",
};

/* ---- reading ---- */

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
		journal_remember(journal, n, str_slice(&path), &entry);
	}
}

static void read_rename(struct journal *journal, const json_t *line, int n, bool has_stayed)
{
	struct rename rename = {
		.inode = (uint64_t)json_integer_value(json_object_get(line, "inode")),
		.is_parked = json_is_true(json_object_get(line, "parked"))};
	scoped_str struct str from = {0}, to = {0};

	if (!get_bytes(line, "from", "from_b64", &from) ||
		!get_bytes(line, "path", "path_b64", &to) || from.len == 0 || to.len == 0)
		return;
	rename.from = from.p;
	rename.to = to.p;
	if (has_stayed)
		journal_forget_rename(journal, n, from.p, to.p);
	else
		journal_remember_rename(journal, n, &rename);
}

static void read_temporary(struct journal *journal, const json_t *line, int n)
{
	scoped_str struct str path = {0};

	if (get_bytes(line, "path", "path_b64", &path))
		journal_remember_temporary(journal, n, str_slice(&path));
}

static void read_line(struct journal *journal, struct slice text)
{
	json_error_t why;
	json_t *line = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, &why);
	const char *act = json_string_value(json_object_get(line, "act"));
	int n = (int)json_integer_value(json_object_get(line, "n"));

	if (act && strcmp(act, "renamed") == 0)
		read_rename(journal, line, n, false);
	else if (act && strcmp(act, "temporary") == 0)
		read_temporary(journal, line, n);
	else if (act && strcmp(act, "stayed") == 0)
		read_rename(journal, line, n, true);
	else if (act && strcmp(act, "begun") == 0)
		journal_remember_begun(journal, n);
	else if (act && strcmp(act, "tidy") == 0)
		journal_forget_temporaries(journal, n);
	else if (act && strcmp(act, "touched") == 0)
		journal_remember_touched(journal, n,
			(uint64_t)json_integer_value(json_object_get(line, "inode")),
			(int64_t)json_integer_value(json_object_get(line, "ctime_ns")));
	else if (act && strcmp(act, "opened") == 0)
		journal->newest = NULL;
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
	journal->newest = NULL;
	str_puts(&journal->owed, "{\"act\":\"opened\"}\n");
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

/* ---- writing ---- */

static int open_file(struct journal *journal)
{
	scoped_mem char *path = mem_printf("%s/" NAME, journal->dir);

	if (journal->fd < 0)
		journal->fd =
			open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return journal->fd < 0 ? -errno : 0;
}

static int keep_failure(struct journal *journal, int r)
{
	if (r < 0)
		journal->failure = r;
	return r;
}

int journal_failure(const struct journal *journal)
{
	return journal->failure;
}

static int write_line(struct journal *journal, const struct str *line)
{
	scoped_str struct str text = {0};
	int r = open_file(journal);

	if (r < 0)
		return keep_failure(journal, r);
	if (journal->torn)
		str_puts(&text,
			"#\n"); /* not a line any more, where it lacked nothing but its end */
	str_add(&text, journal->owed.p, journal->owed.len);
	str_add(&text, line->p, line->len);
	str_putc(&text, '\n');
	r = fdio_write_all(journal->fd, text.p, text.len);
	journal->torn = r < 0; /* a part of it may be there */
	if (r == 0)
		str_reset(&journal->owed);
	return keep_failure(journal, r);
}

static void put_rename(struct str *line, const char *act, int n, const struct rename *rename)
{
	struct jsonw j = jsonw_to(line);

	jsonw_object(&j);
	jsonw_ktext(&j, "act", act);
	jsonw_kint(&j, "n", n);
	jsonw_kslice(&j, "from", slice_of(rename->from));
	jsonw_kslice(&j, "path", slice_of(rename->to));
	jsonw_kint(&j, "inode", (int64_t)rename->inode);
	if (rename->is_parked)
		jsonw_kbool(&j, "parked", true);
	jsonw_object_end(&j);
}

void journal_drop_rename(struct journal *journal, int n)
{
	const struct rename *last = journal_last_rename(journal, n);

	if (!last)
		return;
	put_rename(&journal->owed, "stayed", n, last);
	str_putc(&journal->owed, '\n');
	renames_drop_last(journal->mounts[n].renames);
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
	journal_remember(journal, n, path, entry);
	return write_line(journal, &line);
}

int journal_add_rename(struct journal *journal, int n, const struct rename *rename)
{
	scoped_str struct str line = {0};

	put_rename(&line, "renamed", n, rename);
	journal_remember_rename(journal, n, rename);
	return write_line(journal, &line);
}

int journal_add_begun(struct journal *journal, int n)
{
	scoped_str struct str line = {0};

	if (journal_has_begun(journal, n))
		return 0;
	str_printf(&line, "{\"act\":\"begun\",\"n\":%d}", n);
	journal_remember_begun(journal, n);
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
	journal_remember_temporary(journal, n, slice_of(path));
	return write_line(journal, &line);
}

int journal_add_touched(struct journal *journal, int n, const struct stat *folder)
{
	scoped_str struct str line = {0};
	struct jsonw j = jsonw_to(&line);
	int64_t ctime_ns = clock_ns(folder->st_ctim);

	jsonw_object(&j);
	jsonw_ktext(&j, "act", "touched");
	jsonw_kint(&j, "n", n);
	jsonw_kint(&j, "inode", (int64_t)folder->st_ino);
	jsonw_kint(&j, "ctime_ns", ctime_ns);
	jsonw_object_end(&j);
	journal_remember_touched(journal, n, folder->st_ino, ctime_ns);
	return write_line(journal, &line);
}

int journal_add_tidy(struct journal *journal, int n)
{
	scoped_str struct str line = {0};
	struct journal_mount *m = journal_mount(journal, n);

	if (!m || map_len(m->temporaries) == 0)
		return 0;
	str_printf(&line, "{\"act\":\"tidy\",\"n\":%d}", n);
	journal_forget_temporaries(journal, n);
	return write_line(journal, &line);
}

int journal_sync(struct journal *journal)
{
	if (journal->fd < 0)
		return 0;
	return keep_failure(journal, fdatasync(journal->fd) < 0 ? -errno : 0);
}
