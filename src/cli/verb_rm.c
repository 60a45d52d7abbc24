/* SPDX-License-Identifier: Apache-2.0 */
/* cloche rm: ends a sandbox and removes what it keeps beside its record; the record itself only when asked
 * for by name, which leaves a tombstone in the ledger. */
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "cli/at_rest.h"
#include "cli/life.h"
#include "cli/records.h"
#include "cli/removal.h"
#include "cli/verb.h"
#include "cli/verb_options.h"
#include "control/client.h"
#include "control/rest.h"
#include "launcher/launch.h"
#include "launcher/mend.h"
#include "util/mem.h"

#define END_TRIES 16 /* each waits for whoever has it, two seconds at most */

/* What there is of a sandbox. */
struct kept {
	bool sandbox, changes, bodies, record;
};

static const struct option table[] = {
	{"record", 0, NULL,
		"remove the record too, and changes that were not applied: the ledger keeps its "
		"last head",
		OPTION_ON, offsetof(struct rm_options, record)},
	{"bodies", 0, NULL, "remove what requests, answers and messages carried", OPTION_ON,
		offsetof(struct rm_options, bodies)},
	{"changes", 0, NULL, "remove changes that were not applied too", OPTION_ON,
		offsetof(struct rm_options, changes)},
	{"aged-out", 0, NULL, "with --record: the ledger is to say that it was too old", OPTION_ON,
		offsetof(struct rm_options, is_aged)},
	{NULL},
};
static const struct option_group groups[] = {{"Remove", table}, {NULL}};

/* Somebody answers: the socket's name alone may stay a moment longer than the sandbox. */
static bool is_alive(const struct cli *cli, const char *id)
{
	scoped(client) struct client *client = NULL;

	return client_connect(cli->state_dir, id, &client, NULL) == 0;
}

static bool is_there(const struct cli *cli, const char *kind, const char *id, const char *below)
{
	scoped_mem char *path = mem_printf("%s/%s/%s%s", cli->state_dir, kind, id, below);

	return access(path, F_OK) == 0;
}

static bool has_folder(const struct cli *cli, const char *id)
{
	return is_there(cli, "sandboxes", id, "");
}

/* Written down first: where this is cut off, gc goes on with it, and nobody resumes it meanwhile. */
static int want_gone(const struct cli *cli, const char *id, struct err *err)
{
	scoped_mem char *dir = mem_printf("%s/sandboxes/%s", cli->state_dir, id);
	scoped_fd int lock = launch_lock(cli->state_dir, id, err);
	scoped(rest) struct rest *rest = NULL;
	int r = lock < 0 ? lock : rest_read(dir, &rest, err);

	if (r < 0 || rest->is_wanted_gone)
		return r == -ENOENT ? 0 : r;
	rest->is_wanted_gone = true;
	return rest_write(dir, rest, err);
}

/* Whatever is at work on it right now: being made, suspended, resumed, ended or mended, it is locked. */
static int end_once(const struct cli *cli, const char *id, struct err *err)
{
	char *ids[] = {(char *)id};
	int r = is_alive(cli, id) ? life_ask_all(cli, "stop", ids, 1, err) : 0;

	if (r < 0 && is_alive(cli, id))
		return r;
	r = want_gone(cli, id, err);
	if (r == 0)
		r = mend_sandbox(cli->state_dir, cli->run_dir, id, err);
	return r == -EBUSY ? 0 : r;
}

/* Until its folder is gone: what is removed after that is nobody's any more. */
static int end(const struct cli *cli, const char *id, struct err *err)
{
	int r = 0;

	for (int i = 0; r >= 0 && i < END_TRIES && has_folder(cli, id); i++)
		r = end_once(cli, id, err);
	if (r >= 0 && has_folder(cli, id))
		r = err_set(
			err, -EBUSY, "sandbox %s is being made, resumed or ended: try again", id);
	return r < 0 ? r : 0;
}

static struct kept look(const struct cli *cli, const char *id)
{
	return (struct kept){.sandbox = is_there(cli, "sandboxes", id, ""),
		.changes = is_there(cli, "changes", id, ""),
		.bodies = is_there(cli, "records", id, "/bodies"),
		.record = is_there(cli, "records", id, "")};
}

static void add_word(struct str *out, const char *word, bool is_meant, size_t *n)
{
	if (is_meant)
		str_printf(out, "%s %s", (*n)++ > 0 ? "," : "", word);
}

/* What went, and what stays. Nobody asked for words in JSON or with --quiet. */
static int tell(const struct cli *cli, const struct rm_options *o, const char *id,
	const struct kept *before, struct err *err)
{
	struct kept now = look(cli, id);
	scoped_str struct str out = {0};
	size_t n = 0;

	if (cli->json || cli->jsonl || cli->quiet)
		return 0;
	str_printf(&out, "%s: removed", id);
	add_word(&out, "the sandbox", before->sandbox && !now.sandbox, &n);
	/* Not asked for, they go where nothing was pending: nobody lost any. */
	add_word(&out, "its changes", (o->changes || o->record) && before->changes && !now.changes,
		&n);
	add_word(&out, "its bodies", before->bodies && !now.bodies && now.record, &n);
	add_word(&out, "its record", before->record && !now.record, &n);
	if (n == 0)
		str_puts(&out, " nothing");
	str_puts(&out, now.record ? "; its record" : "");
	str_puts(&out, now.record && now.changes ? " and changes that were not applied" : "");
	str_puts(&out, now.record ? (now.changes ? " stay\n" : " stays\n") : "\n");
	return cli_print(&out, err);
}

static int remove_what(
	const struct cli *cli, const struct rm_options *o, const char *id, struct err *err)
{
	int r = end(cli, id, err);

	if (r == -ENOSPC && (o->changes || o->record) && !at_rest_is(cli, id)) {
		r = removal_changes(cli, id, err); /* that makes room for its end */
		if (r == 0)
			r = end(cli, id, err);
	}
	if (r == 0 && (o->changes || o->record))
		r = removal_changes(cli, id, err);
	if (r == 0 && o->bodies && !o->record)
		r = removal_bodies(cli, id, err);
	return r < 0 || !o->record ? r : removal_record(cli, id, o->is_aged, err);
}

static int remove_one(
	const struct cli *cli, const struct rm_options *o, const char *name, struct err *err)
{
	scoped(reader) struct reader *reader = NULL;
	char id[ID_SIZE];
	struct kept before;
	int r = records_resolve(cli, name, id, err);

	if (r == 0)
		r = records_open(cli, id, &reader, err); /* refuses another user's */
	if (r < 0)
		return r;
	before = look(cli, id);
	r = remove_what(cli, o, id, err);
	return r < 0 ? r : tell(cli, o, id, &before, err);
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	int r = cli_need_root(err);

	for (size_t i = 0; r == 0 && i < n_args; i++)
		r = remove_one(cli, options, args[i], err);
	return r;
}

const struct verb verb_rm = {
	.name = "rm",
	.class = VERB_RUN,
	.usage = "ID...",
	.help = "end a sandbox and remove what it keeps; its record stays unless --record",
	.text = "Says what it removed and what stays.",
	.groups = groups,
	.options_size = sizeof(struct rm_options),
	.min_args = 1,
	.max_args = VERB_MANY,
	.run = run,
};
