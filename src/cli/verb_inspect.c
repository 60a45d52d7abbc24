/* SPDX-License-Identifier: Apache-2.0 */
/* cloche inspect: all that is known of a sandbox beside its events, as JSON. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/sandbox_state.h"
#include "cli/verb.h"
#include "util/mem.h"
#include "util/scoped.h"

static json_t *path_of(const struct cli *cli, const char *kind, const char *id)
{
	scoped_mem char *path = mem_printf("%s/%s/%s", cli->state_dir, kind, id);
	struct stat st;

	return stat(path, &st) == 0 ? json_string(path) : json_null();
}

/* jansson refuses text that is not UTF-8: such a path is left out rather than told wrongly. */
static json_t *describe(const struct cli *cli, const struct sandbox_state *s)
{
	json_t *all = json_object();

	json_object_set_new(all, "id", json_string(s->entry.id));
	json_object_set_new(all, "state", json_string(s->state));
	json_object_set_new(all, "owner_uid", json_integer(s->entry.owner));
	json_object_set_new(all, "record", path_of(cli, "records", s->entry.id));
	json_object_set_new(all, "changes", path_of(cli, "changes", s->entry.id));
	json_object_set(all, "meta", s->meta ? s->meta : json_null());
	json_object_set(all, "seal", s->seal ? s->seal : json_null());
	json_object_set(all, "supervisor", s->status ? s->status : json_null());
	return all;
}

static int find_entry(
	const struct cli *cli, const char *text, struct record_entry *ret_entry, struct err *err)
{
	struct record_list list = {0};
	char id[ID_SIZE];
	int r = records_resolve(cli, text, id, err);

	if (r == 0)
		r = records_list(cli, &list, err);
	if (r < 0)
		return r;
	r = err_set(err, -ENOENT, "the record of %s is gone", id);
	for (size_t i = 0; i < list.n; i++)
		if (strcmp(list.items[i].id, id) == 0) {
			*ret_entry = list.items[i];
			r = 0;
		}
	records_list_done(&list);
	return r;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	scoped_str struct str out = {0};
	struct record_entry entry = {0};
	struct sandbox_state s = {0};
	json_t *all;
	char *text;
	int r = find_entry(cli, args[0], &entry, err);

	if (r == 0)
		r = sandbox_state_read(cli, &entry, &s, err);
	if (r < 0)
		return r;
	all = describe(cli, &s);
	text = json_dumps(all, cli->jsonl ? JSON_COMPACT : JSON_INDENT(2));
	json_decref(all);
	sandbox_state_done(&s);
	if (!text)
		return err_set(
			err, -EINVAL, "what is known of %s cannot be written as JSON", entry.id);
	str_printf(&out, "%s\n", text);
	free(text);
	return cli_print(&out, err);
}

const struct verb verb_inspect = {
	.name = "inspect",
	.class = VERB_RUN,
	.usage = "ID",
	.help = "what a sandbox was asked to be, and how it stands, as JSON",
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
