/* SPDX-License-Identifier: Apache-2.0 */
/* What the forms of a summary share. */
#ifndef REPORT_SUMMARY_INTERNAL_H
#define REPORT_SUMMARY_INTERNAL_H

#include <jansson.h>

#include "manifest/changes_json.h"
#include "report/summary.h"
#include "util/map.h"
#include "view/command_list.h"
#include "view/file_table.h"
#include "view/intern.h"
#include "view/network_table.h"
#include "view/stats_totals.h"

#define SUMMARY_ROWS_MAX \
	1000 /* distinct refusals, denials, questions that are kept; more are counted */
#define SUMMARY_REASONS_MAX 100 /* reasons of blindness, hints, errors */

/* A destination that was refused, or where a secret was on its way to. */
struct summary_place {
	struct slice host, address, protocol, method, url, reason, where;
	int64_t port;
	bool is_shadow; /* it was let through */
};

/* Something refused, as often as it was. */
struct summary_row {
	struct slice what; /* path, system call, "host:port", name of a secret */
	const char *how;   /* "read", "write", ...: what was tried; a refusal's errno; else "" */
	struct slice rule;
	struct summary_place place; /* of the network's rows */
	struct slice program;       /* empty: not known */
	const struct process_node *node;
	struct slice exec;
	int64_t count;
	bool is_aside; /* a probe for a feature, or a path of the kernel's: not worth a headline */
};

struct summary_rows {
	struct map *index; /* key to number of row + 1 */
	struct summary_row *rows;
	size_t n;
	int64_t more; /* that found no place */
};

/* A destination that was held until somebody answered, as often as it was with that answer. */
struct summary_question {
	struct slice host, address, protocol, answer, actor, reason;
	int64_t port, count;
};

struct summary_questions {
	struct map *index; /* key to number of item + 1 */
	struct summary_question *items;
	size_t n;
	int64_t more;
};

/* Texts, each once, as often as it came. */
struct summary_reasons {
	struct map *index;
	struct slice texts[SUMMARY_REASONS_MAX];
	int64_t counts[SUMMARY_REASONS_MAX];
	size_t n;
};

struct summary_execs {
	int64_t started, ended, timed_out, oom_killed, interrupted, left_running, late_bytes;
	int64_t oom_kills, pids_limited, disk_full;
};

struct summary {
	struct summary_facts facts;
	struct intern *intern;
	struct command_list *commands;
	struct file_table *files;
	struct network_table *network;
	struct summary_rows refused, denied, hosts_refused, misused;
	struct summary_questions asked;
	struct summary_reasons blind, hints, errors, sources;
	struct summary_execs execs;
	struct stats_totals stats;
	int64_t first_ms, last_ms, ended_ms; /* 0: not known */
	int64_t events, dropped, n_blind, without_pid;
	int64_t rules_replaced;
	struct slice rules; /* of the last net.rules, as one text; empty: there was none */
	int64_t missing;    /* numbers of events that the record does not hold, or we cannot read */
	uint64_t last_seq;
	bool has_traced; /* tracing did start */
	struct slice stop_reason;
	json_t *meta, *seal; /* NULL: missing or unreadable */
	struct changes_counts_list changes;
	bool has_changes;
};

/* What is counted anew for each output. */
struct summary_counts {
	int64_t commands, failed, derived;
	const struct command *longest;
	struct process_tree_counts programs;
	int64_t written, created, deleted, renamed; /* files that the kernel saw */
	int64_t added, changed, removed;            /* of the cow mounts, by content */
	int64_t pending;                            /* without those that are only counted: */
	int64_t pending_git, pending_modules;       /* below .git and node_modules */
	bool has_files, has_processes;              /* these were watched */
};
void summary_count(struct summary *summary, struct summary_counts *ret_counts);
void summary_note_reason(
	struct summary *summary, struct summary_reasons *reasons, struct slice text);
bool summary_is_complete(const struct summary *summary);
/* What the events of the network say, beside the rows and the table. */
void summary_network_take(struct summary *summary, const struct event *ev);
/* Of net.refused or secret.misuse: what is refused and where; *what is the caller's. */
void summary_network_row(const struct event *ev, struct str *what, struct summary_row *ret_row);
/* Whether a source was watched. */
bool summary_watched(const struct summary *summary, const char *source);

/* A line of the summary. The text holds what came from inside between SUMMARY_QUOTE and SUMMARY_UNQUOTE, escaped:
 * neither byte can be in there. */
#define SUMMARY_QUOTE   '\x01'
#define SUMMARY_UNQUOTE '\x02'
enum summary_tone {
	SUMMARY_PLAIN,
	SUMMARY_BAD,  /* refused, denied, lost */
	SUMMARY_WARN, /* wants a look */
};
struct summary_line {
	enum summary_tone tone;
	const char *label;
	struct str text;
};
struct summary_lines {
	struct summary_line *lines;
	size_t n;
};
/* Lines of the network. The head's: secrets misused before all, then destinations refused. */
void summary_network_head(struct summary *summary, struct summary_lines *lines);
void summary_network_shadowed(struct summary *summary, struct summary_lines *lines);
void summary_network_line(struct summary *summary, struct summary_lines *lines);
void summary_network_observed(
	struct summary *summary, struct str *out); /* what is behind the counts */
void summary_network_enforced(const struct summary *summary, struct str *out);
/* Why nobody looked, in words. */
const char *summary_network_why(const struct summary *summary);
struct jsonw;
void summary_network_json(struct summary *summary, struct jsonw *j);
void summary_network_json_enforced(const struct summary *summary, struct jsonw *j);
/* Of net.asked; the line and the member of what was held until somebody answered. */
void summary_asked_take(struct summary *summary, const struct event *ev);
void summary_asked_line(struct summary *summary, struct summary_lines *lines);
void summary_asked_json(struct summary *summary, struct jsonw *j);
/* What was used: the line, and the member. */
void summary_stats_line(const struct summary *summary, struct summary_lines *lines);
void summary_stats_json(const struct summary *summary, struct jsonw *j);
/* Elements of "refused" (destinations), and the member "misused". */
void summary_network_json_refused(struct summary *summary, struct jsonw *j);
void summary_network_json_misused(struct summary *summary, struct jsonw *j);
void summary_json_row_end(struct summary *summary, struct jsonw *j, const struct summary_row *row);

/* What makers of lines share: a new line; text from inside, escaped, marked, at most max bytes of it (0: all); "1,204 files";
 * " by curl in `curl -d @notes`, 3 times". */
struct str *summary_lines_add(
	struct summary_lines *lines, enum summary_tone tone, const char *label);
void summary_lines_quote(struct str *out, struct slice text, size_t max);
void summary_lines_number(struct str *out, int64_t n, const char *one, const char *many);
void summary_lines_who(struct summary *summary, struct str *out, const struct summary_row *row);
#define SUMMARY_HEAD_ROWS 5 /* refusals, denials and the like told one by one */

/* is_here: read where the record is, so commands are shown as they may be pasted. */
void summary_lines_make(struct summary *summary, bool is_here, struct summary_lines *ret_lines);
void summary_lines_done(struct summary_lines *lines);
/* "cloche sb_...  2026-11-29 14:10:02-14:41:17 UTC  task ...", marked as lines are. */
void summary_lines_title(const struct summary *summary, struct str *out);

/* Of meta.json's spec; NULL where it is not there. */
const json_t *summary_spec(const struct summary *summary, const char *key);

#endif
