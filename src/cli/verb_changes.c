/* SPDX-License-Identifier: Apache-2.0 */
/* cloche changes: what a sandbox changed, by content. What can still be applied is read from the change set; the
 * rest, and all of it for who is not root, from what the record kept at the end. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "cli/changes_text.h"
#include "cli/fold.h"
#include "cli/pending.h"
#include "cli/records.h"
#include "cli/verb.h"
#include "manifest/changes_json.h"
#include "record/record.h"
#include "util/fdio.h"

#define STORED_MAX (256 << 20)

/* Empty where the record has none (yet). */
static int read_stored(const struct cli *cli, const char *id, json_t **ret_list, struct err *err)
{
	scoped_str struct str path = {0}, text = {0};
	json_error_t why;
	int r;

	records_dir(cli, id, &path);
	str_puts(&path, "/" RECORD_CHANGES_NAME);
	r = fdio_read_file(AT_FDCWD, path.p, STORED_MAX, &text);
	if (r == -ENOENT) {
		*ret_list = json_array();
		return 0;
	}
	if (r < 0)
		return err_set(err, r, "read '%s': %m", path.p);
	*ret_list = json_loadb(text.p ? text.p : "", text.len, JSON_REJECT_DUPLICATES, &why);
	if (json_is_array(*ret_list))
		return 0;
	json_decref(*ret_list);
	*ret_list = NULL;
	return err_set(err, -EBADMSG, "'%s' is no list of changes", path.p);
}

static int read_live(struct pending *pending, json_t **ret_list, struct err *err)
{
	scoped_str struct str text = {0};
	json_error_t why;

	changes_json_write(&text, &pending->list);
	*ret_list = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, &why);
	return *ret_list ? 0 : err_set(err, -EBADMSG, "list of changes: %s", why.text);
}

static bool has_root(const json_t *list, const json_t *root)
{
	const json_t *other;
	size_t i;

	json_array_foreach(list, i, other) if (json_equal(json_object_get(other, "root"),
						       json_object_get(root, "root"))) return true;
	return false;
}

/* Adds the roots that only the record knows of. is_settled: there is nothing left of the change set. */
static void add_stored(json_t *list, json_t *stored, bool is_settled)
{
	json_t *root;
	size_t i;

	json_array_foreach(stored, i, root)
	{
		if (has_root(list, root))
			continue;
		if (is_settled && json_is_true(json_object_get(root, "cow")))
			json_object_set_new(root, "pending", json_false());
		json_array_append(list, root);
	}
}

static int collect(
	const struct cli *cli, struct pending *pending, json_t **ret_list, struct err *err)
{
	json_t *stored = NULL, *list = NULL;
	int r = pending->set ? pending_join(cli, pending, err) : 0;

	if (r == 0)
		r = read_live(pending, &list, err);
	if (r == 0)
		r = read_stored(cli, pending->id, &stored, err);
	if (r == 0)
		add_stored(list, stored, geteuid() == 0 && !pending->set);
	json_decref(stored);
	if (r < 0) {
		json_decref(list);
		return r;
	}
	*ret_list = list;
	return 0;
}

static void add_text(const struct cli *cli, const json_t *list, struct str *out)
{
	struct view_style style = cli_style(cli);
	const json_t *root;
	size_t i;

	json_array_foreach(list, i, root) changes_text_add(out, &style, root);
}

static int print(const struct cli *cli, const json_t *list, struct err *err)
{
	scoped_str struct str out = {0};
	char *json = json_dumps(list, JSON_COMPACT);
	int r = 0;

	if (!json)
		return err_set(err, -ENOMEM, "list of changes: %m");
	if (cli->jsonl)
		r = fold_add_lines(&out, slice_of(json), NULL, err);
	else if (cli->json)
		str_printf(&out, "%s\n", json);
	else
		add_text(cli, list, &out);
	free(json);
	return r < 0 ? r : cli_print(&out, err);
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct pending pending;
	json_t *list = NULL;
	int r = pending_open(cli, args[0], false, &pending, err);

	(void)options;
	(void)n_args;
	if (r == 0)
		r = collect(cli, &pending, &list, err);
	if (r == 0 && json_array_size(list) == 0 && geteuid() != 0)
		r = err_set(err, -EPERM,
			"what changed is known at the end of a run: until then, ask with sudo");
	if (r == 0)
		r = print(cli, list, err);
	json_decref(list);
	pending_done(&pending);
	return r;
}

const struct verb verb_changes = {
	.name = "changes",
	.class = VERB_FILES,
	.usage = "ID",
	.help = "the files that a sandbox changed, by content",
	.text = "A added, D removed, M changed, R renamed, m mode or owner only. .git and "
		"node_modules\n"
		"are counted, not listed. `cloche apply` takes the changes over.",
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
