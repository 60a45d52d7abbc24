/* SPDX-License-Identifier: Apache-2.0 */
/* cloche verify: whether a record is as it was signed, and whether any is missing. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/records.h"
#include "cli/tombstones.h"
#include "cli/verb.h"
#include "launcher/audit.h"
#include "launcher/hostkey.h"
#include "launcher/ledger.h"
#include "record/verify.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"

struct verify_verb {
	bool all;
	const char *key_file, *expect_head;
};

struct job {
	const struct cli *cli;
	const struct verify_verb *o;
	struct str key; /* base64; empty: this host has none yet */
	struct str out;
	size_t n, n_bad;
	size_t n_aged, n_removed; /* that are no more, as the ledger says; of --all */
	bool ledger_unread;       /* we may not, or there is none */
};

static void add_findings_json(struct jsonw *j, const struct str *findings)
{
	size_t at = 0;

	jsonw_key(j, "findings");
	jsonw_array(j);
	while (at < findings->len) {
		const char *line = findings->p + at, *end = memchr(line, '\n', findings->len - at);
		size_t len = end ? (size_t)(end - line) : findings->len - at;

		if (len)
			jsonw_slice(j, (struct slice){.p = line, .len = len});
		at += len + 1;
	}
	jsonw_array_end(j);
}

static void add_json(struct job *job, const char *id, const struct verify_result *result)
{
	struct jsonw j = jsonw_to(&job->out);

	if (job->cli->json && job->o->all && job->n)
		str_puts(&job->out, ",\n");
	jsonw_object(&j);
	jsonw_ktext(&j, "sandbox", id);
	jsonw_kbool(&j, "intact", result->is_intact);
	jsonw_kbool(&j, "sealed", result->is_sealed);
	jsonw_kbool(&j, "cut", result->is_cut);
	jsonw_kint(&j, "events", (int64_t)result->events);
	jsonw_kint(&j, "first_seq", (int64_t)result->first_seq);
	jsonw_kint(&j, "last_seq", (int64_t)result->last_seq);
	jsonw_ktext(&j, "head", result->head);
	jsonw_kbool(&j, "ledger", !job->ledger_unread);
	jsonw_kint(&j, "bodies_gone", (int64_t)result->bodies_gone);
	if (result->bodies_gone)
		jsonw_kbool(&j, "bodies_removed", result->bodies_removed);
	add_findings_json(&j, &result->findings);
	jsonw_object_end(&j);
	if (job->cli->jsonl || !job->o->all)
		str_putc(&job->out, '\n');
}

/* Each finding on a line of its own; it may quote what somebody wrote into the record. */
static void add_findings_text(struct str *out, const struct str *findings)
{
	size_t at = 0;

	while (at < findings->len) {
		const char *line = findings->p + at, *end = memchr(line, '\n', findings->len - at);
		size_t len = end ? (size_t)(end - line) : findings->len - at;

		if (len) {
			str_puts(out, "  ");
			log_add_escaped(out, (struct slice){.p = line, .len = len});
			str_putc(out, '\n');
		}
		at += len + 1;
	}
}

static void add_bodies(struct str *out, const struct verify_result *result)
{
	const char *why =
		result->bodies_removed
			? "taken away, as the ledger says"
			: "the ledger, which root can read, says whether that was asked for";

	if (result->bodies_gone == 0)
		return;
	str_printf(out, ", %llu bod%s no longer there (%s)",
		(unsigned long long)result->bodies_gone, result->bodies_gone == 1 ? "y" : "ies",
		why);
}

static void add_text(struct job *job, const char *id, const struct verify_result *result)
{
	struct view_style style = cli_style(job->cli);

	if (result->is_intact && job->cli->quiet)
		return;
	str_printf(&job->out, "%s  ", id);
	view_text_add_color(&job->out, &style, result->is_intact ? VIEW_GREEN : VIEW_RED,
		slice_of(result->is_intact ? "intact" : "NOT INTACT"));
	str_printf(&job->out, "  %llu events", (unsigned long long)result->events);
	if (result->is_cut)
		str_puts(&job->out, ", its end was cut off and is marked so");
	str_puts(&job->out, result->is_sealed ? ", sealed" : ", not sealed");
	add_bodies(&job->out, result);
	if (result->head[0])
		str_printf(&job->out, ", head %s", result->head);
	str_putc(&job->out, '\n');
	add_findings_text(&job->out, &result->findings);
}

static void say(struct job *job, const char *id, const struct verify_result *result)
{
	if (job->cli->json || job->cli->jsonl)
		add_json(job, id, result);
	else
		add_text(job, id, result);
	job->n++;
	job->n_bad += !result->is_intact;
}

/* A record that is asked about by its sandbox's id. */
struct asked {
	const struct cli *cli;
	const char *id;
};

static int are_bodies_removed(void *ctx)
{
	const struct asked *asked = ctx;

	return ledger_has_act(asked->cli->state_dir, asked->id, "remove-bodies");
}

static int verify_one(struct job *job, const char *id, struct err *err)
{
	struct verify_options options = {.key_b64 = job->key.len ? job->key.p : NULL,
		.expect_head = job->o->expect_head,
		.check_signature = hostkey_check,
		.are_bodies_removed = are_bodies_removed};
	struct asked asked = {.cli = job->cli, .id = id};
	struct verify_result result = {0};
	scoped(reader) struct reader *reader = NULL;
	char head[LEDGER_HEAD_SIZE];
	scoped_str struct str dir = {0};
	int r = records_open(job->cli, id, &reader, err); /* whose it is, in words */

	if (r < 0)
		return r;
	records_dir(job->cli, id, &dir);
	r = ledger_find_head(job->cli->state_dir, id, head, &options.ledger_seq, NULL);
	if (r == 0)
		options.ledger_head = head;
	options.ctx = &asked;
	job->ledger_unread = r < 0 && r != -ENOENT;
	r = verify_record(dir.p, &options, &result, err);
	if (r == 0)
		say(job, id, &result);
	verify_result_done(&result);
	return r;
}

/* ---- records that are no more ---- */

/* No fault: but where it had another head than one that was kept elsewhere. */
static void say_removed(struct job *job, const struct tombstone *t)
{
	const char *expect = job->o->expect_head;
	scoped_str struct str findings = {0};
	struct jsonw j = jsonw_to(&job->out);

	if (expect && strcmp(expect, t->head) != 0)
		str_printf(&findings, "its last head was %s, not the expected %s",
			*t->head ? t->head : "unknown", expect);
	job->n_bad += findings.len > 0;
	if (job->cli->json || job->cli->jsonl) {
		jsonw_object(&j);
		tombstones_add_members(&j, t);
		add_findings_json(&j, &findings);
		jsonw_object_end(&j);
		str_putc(&job->out, '\n');
	} else if (!job->cli->quiet || findings.len > 0) {
		tombstones_add_text(&job->out, t);
		add_findings_text(&job->out, &findings);
	}
}

/* It was looked for in vain, with why as the reason. */
static int verify_removed(struct job *job, const char *text, const struct err *why, struct err *err)
{
	struct tombstone found;
	int r = tombstones_find(job->cli, text, &found, err);

	if (r == -ENOENT || r == -EACCES)
		return err_set(err, -ENOENT, "%s%s", why->msg,
			r == -EACCES ? "; the host's ledger, which root can read, says whether it "
				       "was removed"
				     : "");
	if (r == 0)
		say_removed(job, &found);
	return r;
}

/* What the ledger knows: sandboxes that should have a record. */
struct known {
	const struct cli *cli;
	struct map *sandboxes; /* to what became of it */
};

static char removed_mark, aged_mark, kept_mark;

static int note_line(void *ctx, const struct ledger_line *line)
{
	struct known *known = ctx;
	void **slot;

	if (!line->sandbox || (geteuid() != 0 && line->owner != geteuid()))
		return 0;
	slot = map_slot(known->sandboxes, slice_of(line->sandbox));
	if (line->act && strcmp(line->act, LEDGER_REMOVE) == 0)
		*slot = line->detail && strcmp(line->detail, LEDGER_AGED) == 0 ? &aged_mark
		                                                               : &removed_mark;
	else if (!*slot)
		*slot = &kept_mark;
	return 0;
}

static void say_missing(struct job *job, const char *id, const char *why)
{
	struct verify_result result = {0};

	str_puts(&result.findings, why);
	say(job, id, &result);
	str_done(&result.findings);
}

static bool is_gone(const struct job *job, const char *id)
{
	scoped_str struct str dir = {0};

	records_dir(job->cli, id, &dir);
	return id_is_valid("sb", id) && access(dir.p, F_OK) < 0 && errno == ENOENT;
}

static void find_missing(struct job *job, const struct map *sandboxes)
{
	struct slice key;
	void *mark;

	for (size_t i = 0; map_next(sandboxes, &i, &key, &mark);) {
		scoped_mem char *id = mem_copy(key.p, key.len);

		if (!is_gone(job, id))
			continue;
		job->n_aged += mark == &aged_mark;
		job->n_removed += mark == &removed_mark;
		if (mark == &kept_mark)
			say_missing(job, id,
				"the ledger knows this record, but it is not there, and nobody "
				"entered that it was removed");
	}
}

static int pass_over(void *ctx, const json_t *line)
{
	return 0;
}

/* The other chain of the host's. Its rows in a database age, its lines do not. */
static void check_journal(struct job *job)
{
	struct err why = {0};

	if (audit_walk(job->cli->state_dir, pass_over, NULL, &why) == -EBADMSG)
		say_missing(job, "audit", why.msg);
}

static int check_ledger(struct job *job, struct err *err)
{
	scoped(map) struct map *sandboxes = map_new();
	struct known known = {.cli = job->cli, .sandboxes = sandboxes};
	struct err why = {0};
	int r = ledger_walk(job->cli->state_dir, note_line, &known, &why);

	if (r == -EACCES) {
		job->ledger_unread = true;
		return 0;
	}
	if (r == -EBADMSG)
		say_missing(job, "ledger", why.msg);
	else if (r < 0)
		return err_set(err, r, "%s", why.msg);
	find_missing(job, sandboxes);
	check_journal(job);
	return 0;
}

static int verify_all(struct job *job, struct err *err)
{
	struct record_list list;
	int r = records_list(job->cli, &list, err);

	for (size_t i = 0; r == 0 && i < list.n; i++) {
		struct err why = {0};

		if (!records_may_read(job->cli, &list.items[i]))
			continue;
		if (verify_one(job, list.items[i].id, &why) < 0)
			say_missing(job, list.items[i].id, why.msg);
	}
	records_list_done(&list);
	return r < 0 ? r : check_ledger(job, err);
}

static int read_key(struct job *job, struct err *err)
{
	int r;

	if (job->o->key_file)
		return hostkey_read_public_file(job->o->key_file, &job->key, err);
	r = hostkey_read_public(job->cli->state_dir, &job->key, err);
	return r == -ENOENT ? 0 : r;
}

static int verify(struct job *job, char **args, struct err *err)
{
	struct err why = {0};
	char id[ID_SIZE];
	int r = read_key(job, err);

	if (r == 0 && job->o->all)
		return verify_all(job, err);
	if (r < 0)
		return r;
	r = records_resolve(job->cli, args[0], id, &why);
	if (r == -ENOENT && strcmp(args[0], "last") != 0)
		return verify_removed(job, args[0], &why, err);
	return r < 0 ? err_set(err, r, "%s", why.msg) : verify_one(job, id, err);
}

static void add_total(struct job *job)
{
	str_printf(&job->out, "%zu looked at, %zu not intact", job->n, job->n_bad);
	if (job->n_aged)
		str_printf(&job->out, ", %zu aged out", job->n_aged);
	if (job->n_removed)
		str_printf(&job->out, ", %zu removed", job->n_removed);
	str_putc(&job->out, '\n');
}

/* Around the JSON list of --all, and what was not looked at. */
static void finish(struct job *job)
{
	scoped_str struct str list = {0};

	if (job->cli->json && job->o->all) {
		str_printf(&list, "[%s]\n", job->out.p ? job->out.p : "");
		str_reset(&job->out);
		str_add(&job->out, list.p, list.len);
	}
	if (!job->key.len)
		log_warn("this host has no key yet, and no --key was given: signatures were not "
			 "checked");
	if (job->ledger_unread)
		log_warn("the host's ledger cannot be read (as root it can): records were checked "
			 "against their "
			 "own seals only");
	if (job->o->all && !job->cli->json && !job->cli->jsonl && !job->cli->quiet)
		add_total(job);
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct job job = {.cli = cli, .o = options};
	int r = verify(&job, args, err);

	if (r == 0) {
		finish(&job);
		r = cli_print(&job.out, err);
	}
	str_done(&job.key);
	str_done(&job.out);
	return r < 0 ? r : job.n_bad ? CLI_NO : 0;
}

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	const struct verify_verb *o = options;

	if (o->all && n_args)
		return err_set(err, -EINVAL, "give an ID or --all, not both");
	if (!o->all && !n_args)
		return err_set(err, -EINVAL, "which sandbox? give its ID, 'last', or --all");
	if (o->all && o->expect_head)
		return err_set(
			err, -EINVAL, "option '--expect-head' is for one sandbox, not for --all");
	if (o->expect_head && strspn(o->expect_head, "0123456789abcdef") != 64)
		return err_set(err, -EINVAL,
			"option '--expect-head': '%s' is no head: want 64 hexadecimal digits",
			o->expect_head);
	return 0;
}

static const struct option table[] = {
	{"all", 0, NULL,
		"every record of yours, and those that the ledger knows and the disk does not",
		OPTION_ON, offsetof(struct verify_verb, all)},
	{"key", 0, "FILE",
		"believe this public key, such as another host's host.pub, instead of this host's",
		OPTION_TEXT, offsetof(struct verify_verb, key_file)},
	{"expect-head", 0, "HEX", "the record must have had this head, kept elsewhere", OPTION_TEXT,
		offsetof(struct verify_verb, expect_head)},
	{NULL},
};
static const struct option_group groups[] = {{"Options", table}, {NULL}};

const struct verb verb_verify = {
	.name = "verify",
	.class = VERB_VIEW,
	.usage = "ID | --all",
	.help = "check that a record is complete and as it was signed",
	.text = "Proves that nothing was altered after signing by anyone without this host's key, "
		"and that there is "
		"no gap known to the observer. Exit status 1 where something was found. A record "
		"that "
		"was removed,\nor has aged out, is told as that, from the host's ledger.",
	.groups = groups,
	.options_size = sizeof(struct verify_verb),
	.max_args = 1,
	.check = check,
	.run = run,
};
