/* SPDX-License-Identifier: Apache-2.0 */
/* The chains are walked by verify_chain; here stands what goes over both of them: numbers, execs, files that
 * the log names, and the seal. The trace is read before the log, as its writer flushes it first: of a live
 * record what the seal covers is then all there. */
#include "record/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/event_json.h"
#include "record/record_files.h"
#include "record/record_seal.h"
#include "record/verify_blobs.h"
#include "record/verify_chain.h"
#include "util/fdio.h"
#include "util/map.h"
#include "util/mem.h"

#define META_MAX  (4U << 20)
#define FILES_MAX 1000000U
#define STARTED   ((void *)1)
#define FAILED    ((void *)2) /* inside Cloche: there may be no end */
#define ENDED     ((void *)3)

struct named_file {
	char name[CONTROL_LINE_NAME_MAX + 1];
	char sha256[DIGEST_HEX_SIZE];
	uint64_t bytes;
};

struct verify {
	const struct verify_options *options;
	struct verify_result *result;
	struct verify_findings findings;
	int dirfd;
	bool is_live;
	struct record_seal seal;
	struct verify_chain log, trace;
	struct ranges gaps;
	struct map *execs; /* by id: STARTED, FAILED, ENDED */
	struct ranges rows;
	struct named_file *files;
	struct map *names; /* of these files */
	size_t n_files;
	struct verify_blobs blobs;
	struct event_line *parsed;
};

void verify_result_done(struct verify_result *result)
{
	str_done(&result->findings);
}

static int read_text(int dirfd, const char *name, size_t max, struct str *out)
{
	scoped_fd int fd = record_internal_open(dirfd, name, O_RDONLY, NULL);

	return fd < 0 ? fd : fdio_read_all(fd, max, out);
}

static void read_seal(struct verify *v)
{
	int r = record_seal_read(v->dirfd, &v->seal);

	if (r == 0 || (r == -ENOENT && v->is_live))
		return; /* a young record has none yet */
	verify_chain_finding(
		&v->findings, r == -ENOENT ? "there is no seal: nothing proves where it ends"
					   : "seal.json is no seal");
}

static void on_exec(struct verify *v, const struct event *ev, const char *where)
{
	void **state = map_slot(v->execs, ev->exec);

	if (ev->kind == EVENT_EXEC_START) {
		if (*state)
			verify_chain_finding(&v->findings, "%s: exec %.*s starts a second time",
				where, (int)ev->exec.len, ev->exec.p);
		*state = STARTED;
		return;
	}
	if (ev->kind == EVENT_SANDBOX_ERROR) {
		if (*state == STARTED)
			*state = FAILED;
		return;
	}
	if (*state != STARTED && *state != FAILED)
		verify_chain_finding(&v->findings, "%s: exec %.*s ends, but did not start", where,
			(int)ev->exec.len, ev->exec.p);
	*state = ENDED;
	if (event_has(ev, id) && (ev->id < 1 || !ranges_add(&v->rows, (uint64_t)ev->id)))
		verify_chain_finding(&v->findings,
			"%s is row %" PRId64 ", which stands there already or is none", where,
			ev->id);
}

static void on_event_line(struct verify *v, struct slice line, const char *where)
{
	const struct event *ev;
	int r = event_json_read(line, &v->parsed, NULL);

	if (r == -ENOENT)
		return; /* a later version's kind */
	if (r < 0) {
		verify_chain_finding(&v->findings, "%s is no event", where);
		return;
	}
	ev = event_json_get(v->parsed);
	if (ev->kind == EVENT_EXEC_START || ev->kind == EVENT_EXEC_END ||
		(ev->kind == EVENT_SANDBOX_ERROR && ev->exec.len > 0))
		on_exec(v, ev, where);
}

static void add_file(struct verify *v, const struct control_line *control)
{
	struct named_file *file;

	if (v->n_files >= FILES_MAX)
		return;
	v->files = mem_grow(v->files, v->n_files + 1, sizeof(struct named_file));
	file = &v->files[v->n_files++];
	memcpy(file->name, control->name, sizeof(file->name));
	memcpy(file->sha256, control->hash, sizeof(file->sha256));
	file->bytes = control->bytes;
}

static void on_log_line(
	void *ctx, struct slice line, const struct control_line *control, const char *where)
{
	struct verify *v = ctx;

	switch (control->kind) {
	case CONTROL_LINE_EVENT:
		on_event_line(v, line, where);
		return;
	case CONTROL_LINE_FILE:
		add_file(v, control);
		return;
	case CONTROL_LINE_GAP:
		ranges_add_range(&v->gaps, control->first, control->last);
		return;
	case CONTROL_LINE_HEADER:
	case CONTROL_LINE_HASH:
	case CONTROL_LINE_BAD:
		return;
	}
}

static void on_trace_line(
	void *ctx, struct slice line, const struct control_line *control, const char *where)
{
	struct verify *v = ctx;

	if (control->kind == CONTROL_LINE_EVENT)
		verify_blobs_take(&v->blobs, line);
}

static int run_chains(struct verify *v, struct err *err)
{
	bool has_seal = v->seal.json != NULL;
	int r;

	v->log = (struct verify_chain){.dirfd = v->dirfd,
		.name = "log",
		.is_live = v->is_live,
		.sealed = has_seal ? v->seal.head.log : NULL,
		.findings = &v->findings,
		.on_line = on_log_line,
		.ctx = v};
	v->trace = (struct verify_chain){.dirfd = v->dirfd,
		.name = "trace",
		.is_live = v->is_live,
		.sealed = has_seal ? v->seal.head.trace : NULL,
		.findings = &v->findings,
		.on_line = on_trace_line,
		.ctx = v};
	r = verify_chain_run(&v->trace, err);
	return r < 0 ? r : verify_chain_run(&v->log, err);
}

static void tell_gap(struct verify *v, uint64_t first, uint64_t last)
{
	if (first == last)
		verify_chain_finding(&v->findings, "seq %" PRIu64 " is missing", first);
	else
		verify_chain_finding(
			&v->findings, "seq %" PRIu64 " to %" PRIu64 " are missing", first, last);
}

/* Every number up to the last is in one journal or among the told gaps. A live record is whole only as far
 * as its seal goes. */
static void check_numbers(struct verify *v)
{
	struct ranges all = {0};
	uint64_t twice, next = 1, limit = v->is_live ? v->seal.head.seq : UINT64_MAX;

	ranges_merge(&all, &v->log.seqs, &twice);
	ranges_merge(&all, &v->trace.seqs, &twice);
	if (twice)
		verify_chain_finding(
			&v->findings, "seq %" PRIu64 " stands in both journals", twice);
	if (all.n) {
		v->result->first_seq = all.items[0].first;
		v->result->last_seq = all.items[all.n - 1].last;
	}
	ranges_merge(&all, &v->gaps, &twice);
	for (size_t i = 0; i < all.n && next <= limit; i++) {
		uint64_t last = all.items[i].first - 1;

		if (all.items[i].first > next && next <= limit)
			tell_gap(v, next, last < limit ? last : limit);
		next = all.items[i].last + 1;
	}
	ranges_done(&all);
}

static void check_execs(struct verify *v)
{
	struct slice id;
	void *state;

	for (size_t i = 0; !v->is_live && map_next(v->execs, &i, &id, &state);)
		if (state == STARTED)
			verify_chain_finding(&v->findings, "exec %.*s: a start without an end",
				(int)id.len, id.p);
}

/* Numbered as they started, written as they ended: in any order, but without a gap once all have ended. */
static void check_rows(struct verify *v)
{
	uint64_t next = 1;

	for (size_t i = 0; !v->is_live && i < v->rows.n; i++) {
		const struct range *range = &v->rows.items[i];

		if (range->first != next)
			verify_chain_finding(&v->findings,
				"row %" PRIu64 " of the execs is missing: row %" PRIu64
				" comes next",
				next, range->first);
		next = range->last + 1;
	}
}

static void check_meta(struct verify *v)
{
	scoped_str struct str text = {0};
	char sha256[DIGEST_HEX_SIZE];
	int r = read_text(v->dirfd, "meta.json", META_MAX, &text);

	if (r < 0) {
		verify_chain_finding(&v->findings, "meta.json %s",
			r == -ENOENT ? "is missing" : "cannot be read");
		return;
	}
	digest_of(text.p ? text.p : "", text.len, sha256);
	if (v->log.id[0] && strcmp(sha256, v->log.meta_sha256) != 0)
		verify_chain_finding(&v->findings, "meta.json was changed");
}

static void check_file(struct verify *v, const struct named_file *file)
{
	scoped_fd int fd = record_files_open(v->dirfd, file->name);
	char sha256[DIGEST_HEX_SIZE];
	struct digest digest;
	uint64_t bytes;
	int r = fd < 0 ? fd : record_files_hash(fd, &digest, &bytes);

	if (r == 0)
		digest_value_hex(&digest, sha256);
	if (r == -ENOENT)
		verify_chain_finding(&v->findings, "%s is missing", file->name);
	else if (r < 0)
		verify_chain_finding(
			&v->findings, "%s cannot be read: %s", file->name, strerror(-r));
	else if (bytes != file->bytes || strcmp(sha256, file->sha256) != 0)
		verify_chain_finding(&v->findings, "%s was changed", file->name);
}

static void on_path(void *ctx, const char *path)
{
	struct verify *v = ctx;

	if (!map_find(v->names, slice_of(path)))
		verify_chain_finding(&v->findings, "%s is not one that the log names", path);
}

static void check_files(struct verify *v)
{
	for (size_t i = 0; i < v->n_files; i++) {
		check_file(v, &v->files[i]);
		*map_slot(v->names, slice_of(v->files[i].name)) = v;
	}
	if (v->is_live)
		return; /* some are still being written */
	if (record_files_walk(v->dirfd, on_path, v) < 0)
		verify_chain_finding(
			&v->findings, "outputs, casts or changes is no folder that can be read");
}

/* A writer that goes on behind a suspended end has not sealed what follows yet. */
static bool is_closed(const struct verify *v)
{
	enum record_end end = v->seal.head.end;

	return end != RECORD_OPEN && !(end == RECORD_SUSPENDED && v->is_live);
}

static void check_journal_seal(struct verify *v, const struct verify_chain *chain)
{
	if (!chain->met)
		verify_chain_finding(&v->findings,
			"the %s is not the one that was sealed: the sealed hash is nowhere in it",
			chain->name);
	else if (is_closed(v) && chain->lines_behind_seal > 0)
		verify_chain_finding(&v->findings,
			"the %s goes on behind the %s seal, by %" PRIu64 " line%s%s", chain->name,
			v->seal.head.end == RECORD_SUSPENDED ? "suspended" : "final",
			chain->lines_behind_seal, chain->lines_behind_seal == 1 ? "" : "s",
			v->seal.head.end == RECORD_SUSPENDED
				? " (a resume that was killed leaves it so until `cloche gc`)"
				: "");
}

static void check_signature(struct verify *v)
{
	const struct verify_options *o = v->options;
	const struct record_seal *seal = &v->seal;
	scoped_str struct str text = {0};
	bool is_ours = o->key_b64 && strcmp(o->key_b64, seal->key) == 0;

	if (o->key_b64 && !is_ours)
		verify_chain_finding(
			&v->findings, "it is sealed with another key, %s", seal->fingerprint);
	if (!o->check_signature)
		return;
	record_head_text(&seal->head, seal->id, &text);
	if (o->check_signature(seal->key, text.p, text.len, seal->signature) < 0)
		verify_chain_finding(
			&v->findings, "the signature in seal.json is not good for its head");
	else
		v->result->is_sealed = is_ours && is_closed(v);
}

/* The end is there, and is the one that was sealed. */
static void check_end(struct verify *v)
{
	const struct record_head *sealed = &v->seal.head;

	if (sealed->seq > v->result->last_seq && !(v->log.met && v->trace.met)) {
		verify_chain_finding(&v->findings,
			"the end was cut off: it was sealed up to seq %" PRIu64
			" and stops at seq %" PRIu64,
			sealed->seq, v->result->last_seq);
		return;
	}
	check_journal_seal(v, &v->log);
	check_journal_seal(v, &v->trace);
	if (v->findings.n == 0 && v->log.events_at_seal + v->trace.events_at_seal != sealed->events)
		verify_chain_finding(&v->findings,
			"the seal covers %" PRIu64 " events, %" PRIu64 " are there", sealed->events,
			v->log.events_at_seal + v->trace.events_at_seal);
}

static void check_ledger(struct verify *v)
{
	const struct verify_options *o = v->options;
	const struct record_head *sealed = &v->seal.head;

	if (!o->ledger_head)
		return;
	if (o->ledger_seq > sealed->seq)
		verify_chain_finding(&v->findings,
			"the end was cut off: the ledger knows it up to seq %" PRIu64
			", the seal ends at seq %" PRIu64,
			o->ledger_seq, sealed->seq);
	else if (o->ledger_seq < sealed->seq)
		verify_chain_finding(&v->findings,
			"the ledger does not know its seal: it stops at seq %" PRIu64,
			o->ledger_seq);
	else if (strcmp(o->ledger_head, sealed->head) != 0)
		verify_chain_finding(
			&v->findings, "the ledger knows another head, %s", o->ledger_head);
}

static void check_seal(struct verify *v)
{
	const struct record_seal *seal = &v->seal;

	if (!seal->json)
		return;
	if (v->log.id[0] && strcmp(seal->id, v->log.id) != 0)
		verify_chain_finding(
			&v->findings, "seal.json is of another record, '%s'", seal->id);
	if (strcmp(seal->named, seal->head.head) != 0)
		verify_chain_finding(
			&v->findings, "the head in seal.json is not that of what it says");
	check_end(v);
	check_signature(v);
	check_ledger(v);
	v->result->is_cut = seal->head.end == RECORD_CUT;
	if (seal->head.end != RECORD_OPEN || v->is_live)
		return;
	v->result->is_cut = true;
	verify_chain_finding(&v->findings, "its end was never sealed: `cloche gc` closes it");
}

static void tell_head(struct verify *v)
{
	const char *expect = v->options->expect_head;

	memcpy(v->result->head, v->seal.head.head, DIGEST_HEX_SIZE);
	if (expect && strcmp(expect, v->result->head) != 0)
		verify_chain_finding(&v->findings, "its head is %s, not the expected %s",
			v->result->head[0] ? v->result->head : "unknown", expect);
}

static bool is_live(int dirfd)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	scoped_fd int fd = record_internal_open(dirfd, "log.jsonl", O_RDONLY, NULL);

	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static int check_all(struct verify *v, struct err *err)
{
	int r;

	v->is_live = is_live(v->dirfd);
	read_seal(v);
	r = run_chains(v, err);
	if (r < 0)
		return r;
	check_numbers(v);
	check_execs(v);
	check_rows(v);
	check_meta(v);
	check_files(v);
	verify_blobs_check(&v->blobs, v->dirfd, v->options, &v->findings, v->result);
	check_seal(v);
	tell_head(v);
	return 0;
}

static void done(struct verify *v)
{
	record_seal_done(&v->seal);
	verify_chain_done(&v->log);
	verify_chain_done(&v->trace);
	ranges_done(&v->gaps);
	ranges_done(&v->rows);
	map_free(v->execs);
	map_free(v->names);
	free(v->files);
	verify_blobs_done(&v->blobs);
	event_line_free(v->parsed);
	str_done(&v->findings.text);
}

static void give_result(struct verify *v)
{
	struct verify_result *result = v->result;

	result->events = v->log.events + v->trace.events;
	result->is_intact = v->findings.n == 0;
	if (v->findings.n > VERIFY_CHAIN_FINDINGS_MAX)
		str_printf(&v->findings.text, "and %u more\n",
			v->findings.n - VERIFY_CHAIN_FINDINGS_MAX);
	result->findings = v->findings.text;
	v->findings.text = (struct str){0};
	if (!result->findings.p)
		str_add(&result->findings, "", 0);
}

int verify_record(const char *dir, const struct verify_options *options,
	struct verify_result *ret_result, struct err *err)
{
	struct verify_result result = {0};
	struct verify v = {.options = options, .result = &result};
	scoped_fd int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (dirfd < 0)
		return err_set(err, -errno, "open record '%s': %m", dir);
	v.dirfd = dirfd;
	v.execs = map_new();
	v.names = map_new();
	r = check_all(&v, err);
	if (r == 0) {
		give_result(&v);
		*ret_result = result;
	}
	done(&v);
	return r < 0 ? err_wrap(err, r, "verify record '%s'", dir) : 0;
}
