/* SPDX-License-Identifier: Apache-2.0 */
/* A hash line is made again from the lines it covers; where the two differ, the line sums say what was done
 * to which line: the beginning and the end that agree are taken off, what remains between is the change. */
#include "record/verify_chain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/lines.h"
#include "record/record_journal.h"

#define SUM_LEN     8U
#define SUMS_MAX    (64U << 20) /* of one batch in bytes: no writer of ours comes near */
#define MISSING_MAX 20U         /* segments told one by one */
#define SEGMENT_END ".jsonl"

/* The file at hand. */
struct pass {
	struct verify_chain *chain;
	struct lines lines;
	struct control_line control;
	char file[RECORD_JOURNAL_NAME_SIZE];
	unsigned segment;
	struct digest digest; /* from the last hash line on */
	struct str sums;      /* of the lines since */
	uint64_t n;           /* how many */
	uint64_t first;       /* number of the first of them */
	uint64_t batch, events,
		seq;     /* as of the last hash line or, for the latter two, the last event */
	bool skips_prev; /* the segment before is missing: that is told already */
};

void verify_chain_finding(struct verify_findings *findings, const char *fmt, ...)
{
	char sentence[ERR_MAX];
	va_list ap;

	if (findings->n++ >= VERIFY_CHAIN_FINDINGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	for (char *c = sentence; *c; c++)
		if ((unsigned char)*c <
			0x20) /* a name in it must not begin a sentence of its own */
			*c = '?';
	str_puts(&findings->text, sentence);
	str_putc(&findings->text, '\n');
}

void verify_chain_done(struct verify_chain *chain)
{
	ranges_done(&chain->seqs);
}

/* "log.jsonl line 12", "log.jsonl lines 12 to 14" */
static void add_place(char place[96], const char *file, uint64_t first, uint64_t last)
{
	if (first == last)
		snprintf(place, 96, "%s line %" PRIu64, file, first);
	else
		snprintf(place, 96, "%s lines %" PRIu64 " to %" PRIu64, file, first, last);
}

static int compare_sums(const void *a, const void *b)
{
	return memcmp(a, b, SUM_LEN);
}

static bool is_same_set(const char *a, const char *b, size_t n)
{
	scoped_str struct str x = {0}, y = {0};

	str_add(&x, a, n * SUM_LEN);
	str_add(&y, b, n * SUM_LEN);
	qsort(x.p, n, SUM_LEN, compare_sums);
	qsort(y.p, n, SUM_LEN, compare_sums);
	return memcmp(x.p, y.p, n * SUM_LEN) == 0;
}

/* As many lines as there were: each that differs, by itself. */
static void tell_changed(
	struct pass *pass, const char *is, const char *was, uint64_t first, size_t n)
{
	if (n > 1 && is_same_set(is, was, n)) {
		char place[96];

		add_place(place, pass->file, first, first + n - 1);
		verify_chain_finding(pass->chain->findings, "%s were reordered", place);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (memcmp(is + i * SUM_LEN, was + i * SUM_LEN, SUM_LEN) != 0)
			verify_chain_finding(pass->chain->findings,
				"%s line %" PRIu64 " was changed", pass->file, first + i);
}

static void tell_difference(struct pass *pass, const char *is, size_t n_is, const char *was,
	size_t n_was, uint64_t first)
{
	struct verify_findings *findings = pass->chain->findings;
	char place[96];

	add_place(place, pass->file, first, first + (n_is ? n_is - 1 : 0));
	if (n_is == n_was)
		tell_changed(pass, is, was, first, n_is);
	else if (n_is == 0 && first == 1)
		verify_chain_finding(findings, "%s: %zu line%s removed at its start", pass->file,
			n_was, n_was == 1 ? " was" : "s were");
	else if (n_is == 0)
		verify_chain_finding(findings, "%s: %zu line%s removed behind line %" PRIu64,
			pass->file, n_was, n_was == 1 ? " was" : "s were", first - 1);
	else if (n_was == 0)
		verify_chain_finding(findings, "%s %s inserted", place, n_is == 1 ? "was" : "were");
	else
		verify_chain_finding(findings, "%s %s where there were %zu", place,
			n_is == 1 ? "stands" : "stand", n_was);
}

static void compare_lines(struct pass *pass)
{
	const char *is = pass->sums.p ? pass->sums.p : "";
	const char *was = pass->control.sums.p ? pass->control.sums.p : "";
	size_t n_is = pass->sums.len / SUM_LEN, n_was = pass->control.sums.len / SUM_LEN, same = 0;

	while (same < n_is && same < n_was &&
		memcmp(is + same * SUM_LEN, was + same * SUM_LEN, SUM_LEN) == 0)
		same++;
	is += same * SUM_LEN;
	was += same * SUM_LEN;
	n_is -= same;
	n_was -= same;
	while (n_is && n_was &&
		memcmp(is + (n_is - 1) * SUM_LEN, was + (n_was - 1) * SUM_LEN, SUM_LEN) == 0) {
		n_is--;
		n_was--;
	}
	tell_difference(pass, is, n_is, was, n_was, pass->first + same);
}

static bool has_same_lines(const struct pass *pass)
{
	return slice_eq(str_slice(&pass->sums), str_slice(&pass->control.sums));
}

/* The hash line is not what its lines give: say why. */
static void tell_break(struct pass *pass, const char *value)
{
	struct verify_findings *findings = pass->chain->findings;
	uint64_t batch = pass->control.batch;

	if (strcmp(value, pass->control.hash) != 0 && batch > pass->batch + 1) {
		uint64_t gone = batch - pass->batch - 1;

		if (pass->n > pass->control.n)
			verify_chain_finding(findings,
				"%s: a hash line was removed before line %" PRIu64, pass->file,
				pass->lines.number);
		else
			verify_chain_finding(findings,
				"%s: %" PRIu64 " batch%s of lines %s removed behind line %" PRIu64,
				pass->file, gone, gone == 1 ? "" : "es", gone == 1 ? "was" : "were",
				pass->first - 1);
		if (has_same_lines(pass) || pass->n > pass->control.n)
			return;
	}
	if (has_same_lines(pass) || strcmp(value, pass->control.hash) == 0 ||
		pass->control.sums.len != pass->control.n * SUM_LEN || pass->sums.len >= SUMS_MAX)
		verify_chain_finding(findings, "%s line %" PRIu64 " (a hash line) was changed",
			pass->file, pass->lines.number);
	else
		compare_lines(pass);
}

static void begin_batch(struct pass *pass)
{
	digest_init(&pass->digest);
	str_reset(&pass->sums);
	pass->n = 0;
	pass->first = pass->lines.number + 1;
}

static void meet_seal(struct pass *pass, const char *value)
{
	struct verify_chain *chain = pass->chain;

	if (!chain->sealed || (strcmp(chain->sealed, value) != 0 &&
				      strcmp(chain->sealed, pass->control.hash) != 0))
		return;
	chain->met = true;
	chain->events_at_seal = chain->events;
	chain->lines_behind_seal = 0;
}

static void on_hash_line(struct pass *pass, struct slice line)
{
	struct verify_chain *chain = pass->chain;
	scoped_str struct str want = {0};
	char value[DIGEST_HEX_SIZE];

	digest_value_hex(&pass->digest, value);
	record_journal_hash_line(&want, &(struct record_journal_hash){.head = value,
						.batch = pass->batch + 1,
						.n = pass->n,
						.seq = pass->seq,
						.events = pass->events,
						.sums = str_slice(&pass->sums)});
	if (want.len != line.len + 1 || memcmp(want.p, line.p, line.len) != 0)
		tell_break(pass, value);
	meet_seal(pass, value);
	memcpy(chain->head, pass->control.hash, DIGEST_HEX_SIZE);
	pass->batch = pass->control.batch; /* what comes is measured by what this line says */
	pass->events = pass->control.events;
	pass->seq = pass->control.seq;
	begin_batch(pass);
	digest_add(&pass->digest, line.p, line.len);
	digest_add(&pass->digest, "\n", 1);
}

static void check_header(struct pass *pass, const char *where)
{
	struct verify_chain *chain = pass->chain;
	const struct control_line *control = &pass->control;

	if (pass->lines.number != 1 || strcmp(control->journal, chain->name) != 0 ||
		control->segment != pass->segment) {
		verify_chain_finding(
			chain->findings, "%s is a header that does not belong there", where);
		return;
	}
	if (pass->segment == 0) {
		memcpy(chain->id, control->sandbox, sizeof(chain->id));
		memcpy(chain->meta_sha256, control->hash, sizeof(chain->meta_sha256));
		return;
	}
	if (chain->id[0] && strcmp(chain->id, control->sandbox) != 0)
		verify_chain_finding(chain->findings, "%s is of another record, '%s'", pass->file,
			control->sandbox);
	if (strcmp(control->hash, chain->head) != 0 && !pass->skips_prev)
		verify_chain_finding(chain->findings,
			"%s does not go on where the file before it ends", pass->file);
}

static void on_event(struct pass *pass, struct slice line, const char *where)
{
	struct verify_chain *chain = pass->chain;
	uint64_t seq;

	if (control_line_seq(line, &seq) < 0) {
		verify_chain_finding(chain->findings, "%s is no event", where);
		return;
	}
	if (!ranges_add(&chain->seqs, seq))
		verify_chain_finding(
			chain->findings, "%s: seq %" PRIu64 " stands a second time", where, seq);
	chain->events++;
	pass->events++;
	pass->seq = seq;
	chain->last_seq = seq > chain->last_seq ? seq : chain->last_seq;
}

static void on_covered_line(struct pass *pass, struct slice line)
{
	struct verify_chain *chain = pass->chain;
	char where[96], sum[SUM_LEN + 1];

	snprintf(where, sizeof(where), "%s line %" PRIu64, pass->file, pass->lines.number);
	record_journal_line_sum(line, sum);
	if (pass->sums.len < SUMS_MAX)
		str_add(&pass->sums, sum, SUM_LEN);
	pass->n++;
	digest_add(&pass->digest, line.p, line.len);
	digest_add(&pass->digest, "\n", 1);
	if (pass->control.kind == CONTROL_LINE_EVENT)
		on_event(pass, line, where);
	else if (pass->control.kind == CONTROL_LINE_HEADER)
		check_header(pass, where);
	else if (pass->control.kind == CONTROL_LINE_BAD)
		verify_chain_finding(
			chain->findings, "%s is neither an event nor a line of ours", where);
	if (pass->control.kind != CONTROL_LINE_BAD)
		chain->on_line(chain->ctx, line, &pass->control, where);
}

static void end_file(struct pass *pass)
{
	struct verify_findings *findings = pass->chain->findings;
	size_t torn = lines_rest(&pass->lines).len;
	char place[96];

	if (pass->lines.number == 0)
		verify_chain_finding(findings, "%s is empty", pass->file);
	if (pass->chain->is_live)
		return;
	add_place(place, pass->file, pass->first, pass->lines.number);
	if (pass->n > 0)
		verify_chain_finding(findings, "%s %s behind the last hash line", place,
			pass->n == 1 ? "stands" : "stand");
	if (torn)
		verify_chain_finding(
			findings, "%s ends in a torn line of %zu bytes", pass->file, torn);
}

static int check_file(struct pass *pass)
{
	struct slice line;
	int r = lines_open(&pass->lines, pass->chain->dirfd, pass->file);

	if (r < 0)
		return r;
	begin_batch(pass);
	while ((r = lines_next(&pass->lines, &line)) > 0) {
		pass->chain->lines_behind_seal++;
		if (pass->lines.is_long)
			verify_chain_finding(pass->chain->findings,
				"%s line %" PRIu64 " is too long to be one", pass->file,
				pass->lines.number);
		else if (pass->lines.number == 1 &&
			 !slice_starts(line, RECORD_JOURNAL_HEADER_START))
			verify_chain_finding(pass->chain->findings, "%s has no header", pass->file);
		if (control_line_read(line, &pass->control) == CONTROL_LINE_HASH)
			on_hash_line(pass, line);
		else
			on_covered_line(pass, line);
	}
	if (r == 0)
		end_file(pass);
	lines_done(&pass->lines);
	return r;
}

/* The highest number of a trace file, whatever lies between. */
static int last_segment(int dirfd, unsigned *ret_last)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r;

	*ret_last = 0;
	if (!dir) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while ((errno = 0, e = readdir(dir))) {
		char name[RECORD_JOURNAL_NAME_SIZE];
		unsigned n;

		if (sscanf(e->d_name, "trace-%5u", &n) != 1 || n > RECORD_JOURNAL_N_SEGMENTS)
			continue;
		record_journal_file_name("trace", n, name);
		if (strcmp(name, e->d_name) == 0 && n > *ret_last)
			*ret_last = n;
	}
	r = -errno;
	closedir(dir);
	return r;
}

static int check_segments(struct pass *pass, unsigned first, unsigned last)
{
	unsigned missing = 0;
	int r = 0;

	for (unsigned n = first; n <= last && r == 0; n++) {
		pass->segment = n;
		record_journal_file_name(pass->chain->name, n, pass->file);
		r = check_file(pass);
		pass->skips_prev = r == -ENOENT;
		if (r != -ENOENT)
			continue;
		if (missing++ < MISSING_MAX)
			verify_chain_finding(pass->chain->findings, "%s is missing", pass->file);
		r = 0;
	}
	return r;
}

int verify_chain_run(struct verify_chain *chain, struct err *err)
{
	struct pass pass = {.chain = chain};
	unsigned first = 0, last = 0;
	int r = 0;

	memset(chain->head, '0', DIGEST_HEX_LEN);
	chain->head[DIGEST_HEX_LEN] = '\0';
	chain->met = chain->sealed && strcmp(chain->sealed, chain->head) == 0;
	if (strcmp(chain->name, "trace") == 0) {
		first = 1;
		r = last_segment(chain->dirfd, &last);
	}
	if (r == 0)
		r = check_segments(&pass, first, last);
	control_line_done(&pass.control);
	str_done(&pass.sums);
	return r < 0 ? err_set(err, r, "read %s: %m", pass.file[0] ? pass.file : chain->name) : 0;
}
