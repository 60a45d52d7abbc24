/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary of a record: one fact about a sandbox. What each kind carries is told in docs/events.md.
 *
 * An event is flat: every field of every kind is a member, and a bit says whether it is there. Producers
 * set fields with event_set() and hand the event to a sink; nothing in it is owned, so whatever the slices
 * point at must live until emit returns. */
#ifndef EVENT_EVENT_H
#define EVENT_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/slice.h"

#define EVENT_SCHEMA 1 /* "v" on every line */

/* X(symbol, name in the record) */
#define EVENT_KINDS(X) \
	X(PROCESS_EXEC, "process.exec") \
	X(PROCESS_EXIT, "process.exit") \
	X(PROCESS_FORK, "process.fork") \
	X(PROCESS_OUTPUT, "process.output") \
	X(FILE_OPEN, "file.open") \
	X(FILE_RENAME, "file.rename") \
	X(FILE_DELETE, "file.delete") \
	X(FILE_TRUNCATE, "file.truncate") \
	X(FILE_LINK, "file.link") \
	X(FILE_MODE, "file.mode") \
	X(DIR_CREATE, "dir.create") \
	X(MOUNT_OPEN, "mount.open") \
	X(MOUNT_CLOSE, "mount.close") \
	X(MOUNT_CREATE, "mount.create") \
	X(MOUNT_MKDIR, "mount.mkdir") \
	X(MOUNT_RENAME, "mount.rename") \
	X(MOUNT_DELETE, "mount.delete") \
	X(MOUNT_TRUNCATE, "mount.truncate") \
	X(NET_DNS, "net.dns") \
	X(NET_CONNECT, "net.connect") \
	X(NET_LISTEN, "net.listen") \
	X(NET_ACCEPT, "net.accept") \
	X(NET_FLOW, "net.flow") \
	X(NET_UDP, "net.udp") \
	X(NET_HTTP, "net.http") \
	X(NET_WS, "net.ws") \
	X(NET_REFUSED, "net.refused") \
	X(SECRET_MISUSE, "secret.misuse") \
	X(EXEC_START, "exec.start") \
	X(EXEC_END, "exec.end") \
	X(EXEC_LATE, "exec.late") \
	X(SANDBOX_CREATED, "sandbox.created") \
	X(SANDBOX_STARTED, "sandbox.started") \
	X(SANDBOX_PAUSED, "sandbox.paused") \
	X(SANDBOX_WOKEN, "sandbox.woken") \
	X(SANDBOX_SUSPENDED, "sandbox.suspended") \
	X(SANDBOX_RESUMED, "sandbox.resumed") \
	X(SANDBOX_STOPPED, "sandbox.stopped") \
	X(SANDBOX_REMOVED, "sandbox.removed") \
	X(SANDBOX_STATS, "sandbox.stats") \
	X(NET_HELD, "net.held") \
	X(NET_ASKED, "net.asked") \
	X(NET_RULES, "net.rules") \
	X(NET_PROXY, "net.proxy") \
	X(NET_GATEWAY, "net.gateway") \
	X(SANDBOX_REFUSED, "sandbox.refused") \
	X(SANDBOX_ERROR, "sandbox.error") \
	X(HINT, "hint") \
	X(TRACE_STARTED, "trace.started") \
	X(TRACE_DROPPED, "trace.dropped") \
	X(TRACE_BLIND, "trace.blind") \
	X(TRACE_CLEARED, "trace.cleared")

enum event_kind {
#define EVENT_KIND_ENUM(symbol, name) EVENT_##symbol,
	EVENT_KINDS(EVENT_KIND_ENUM)
#undef EVENT_KIND_ENUM
		EVENT_N_KINDS
};

struct event_list {
	const struct slice *items;
	size_t n;
};

/* The types a field can have: its C type and how it stands in JSON. */
typedef int64_t event_int;       /* a number */
typedef bool event_bool;         /* true or false */
typedef struct slice event_text; /* a string, with <name>_b64 beside it where it is not UTF-8 */
typedef struct event_list event_list; /* a list of strings, likewise */
typedef int event_errno;              /* a positive errno, written as its name: "ENOENT" */
typedef struct slice event_raw;       /* JSON that one of our own writers made */

/* X(name in JSON, member, type): in the order in which they are written. The header fields v, sandbox, seq, guest_ns,
 * wall_ms, kind, pid, task, exec and internal come before these on each line. */
#define EVENT_FIELDS(X) \
	/* processes */ \
	X(path, path, text) \
	X(path_unresolved, path_unresolved, bool) \
	X(path_state, path_state, text) \
	X(argv, argv, list) \
	X(argv_count, argv_count, int) \
	X(argv_bytes, argv_bytes, int) \
	X(argv_truncated, argv_truncated, bool) \
	X(ppid, ppid, int) \
	X(cwd, cwd, text) \
	X(uid, uid, int) \
	X(entered, entered, bool) \
	X(stdout_file, stdout_file, int) \
	X(stderr_file, stderr_file, int) \
	X(code, code, int) \
	X(signal, signal, int) \
	X(child_pid, child_pid, int) \
	X(thread, thread, bool) \
	X(stream, stream, text) \
	X(data, data, text) \
	X(bytes, bytes, int) \
	X(file, file, int) \
	/* files */ \
	X(access, access, text) \
	X(create, create, bool) \
	X(created, created, bool) \
	X(truncate, truncate, bool) \
	X(directory, directory, bool) \
	X(type, type, text) \
	X(from, from, text) \
	X(to, to, text) \
	X(replaced, replaced, bool) \
	X(exchange, exchange, bool) \
	X(target, target, text) \
	X(symbolic, symbolic, bool) \
	X(size, size, int) \
	X(what, what, text) \
	X(mode, mode, int) \
	X(owner, owner, int) \
	X(group, group, int) \
	X(name, name, text) \
	X(bytes_read, bytes_read, int) \
	X(bytes_written, bytes_written, int) \
	X(mapped, mapped, text) \
	X(cloned, cloned, bool) \
	X(asynchronous, asynchronous, bool) \
	X(open_at_end, open_at_end, bool) \
	X(witness, witness, bool) \
	X(result, result, errno) \
	X(own_filter, own_filter, bool) \
	/* refusals, gaps, hints */ \
	X(call, call, text) \
	X(args, args, list) \
	X(rule, rule, text) \
	X(reason, reason, text) \
	X(count, count, int) \
	X(source_lost, source_lost, text) \
	X(advice, advice, text) \
	X(sources, sources, list) \
	/* exec rows: exec.start carries those known then, exec.end all of them */ \
	X(id, id, int) \
	X(account, account, text) \
	X(agent, agent, text) \
	X(task, task_text, text) \
	X(work_item, work_item, text) \
	X(source, source, text) \
	X(via, via, text) \
	X(actor, actor, text) \
	X(operation, operation, text) \
	X(command, command, text) \
	X(detail, detail, raw) \
	X(env_names, env_names, list) \
	X(user, user, text) \
	X(terminal, terminal, bool) \
	X(exit_code, exit_code, int) \
	X(timed_out, timed_out, bool) \
	X(oom_killed, oom_killed, bool) \
	X(interrupted, interrupted, bool) \
	X(left_running, left_running, int) \
	X(slice_complete, slice_complete, bool) \
	X(started_at, started_at, text) \
	X(duration_ms, duration_ms, int) \
	X(stdout, stdout_text, text) \
	X(stderr, stderr_text, text) \
	X(stdout_bytes, stdout_bytes, int) \
	X(stderr_bytes, stderr_bytes, int) \
	X(stdout_sha256, stdout_sha256, text) \
	X(stderr_sha256, stderr_sha256, text) \
	X(output_truncated, output_truncated, bool) \
	X(labels, labels, raw) \
	X(hosts_refused, hosts_refused, list) \
	X(pids_limited, pids_limited, bool) \
	X(disk_full, disk_full, bool) \
	X(oom_kills, oom_kills, int) \
	X(cpu_throttled_ms, cpu_throttled_ms, int) \
	/* what was used: of an exec, of the sandbox */ \
	X(cpu_ms, cpu_ms, int) \
	X(memory_bytes, memory_bytes, int) \
	X(memory_peak_bytes, memory_peak_bytes, int) \
	X(rss_bytes, rss_bytes, int) \
	X(rss_max_bytes, rss_max_bytes, int) \
	X(processes, processes, int) \
	X(threads_peak, threads_peak, int) \
	X(disk_read_bytes, disk_read_bytes, int) \
	X(disk_write_bytes, disk_write_bytes, int) \
	X(disk_bytes, disk_bytes, int) \
	/* network: what led there and how it went */ \
	X(flow, flow, int) \
	X(protocol, protocol, text) \
	X(host, host, text) \
	X(address, address, text) \
	X(port, port, int) \
	X(server, server, text) \
	X(answers, answers, list) \
	X(refused, refused, bool) \
	X(shadow, shadow, bool) \
	X(stage, stage, text) \
	X(error, error, text) \
	X(failed, failed, bool) \
	X(tls, tls, text) \
	X(sni, sni, text) \
	X(bytes_out, bytes_out, int) \
	X(bytes_in, bytes_in, int) \
	X(datagrams, datagrams, int) \
	X(duration_ns, duration_ns, int) \
	X(where, where, text) \
	X(ask, ask, int) \
	X(answer, answer, text) \
	X(rules, rules, list) \
	/* requests, answers and messages */ \
	X(method, method, text) \
	X(url, url, text) \
	X(headers, headers, raw) \
	X(direction, direction, text) \
	X(opcode, opcode, int) \
	X(compressed, compressed, bool) \
	X(body_bytes, body_bytes, int) \
	X(request_bytes, request_bytes, int) \
	X(body, body, text) \
	X(body_encoding, body_encoding, text) \
	X(body_truncated, body_truncated, bool) \
	X(body_sha256, body_sha256, text) \
	X(body_blob, body_blob, text) \
	X(body_tail_blob, body_tail_blob, text) \
	X(status, status, int) \
	X(response_headers, response_headers, raw) \
	X(response_bytes, response_bytes, int) \
	X(response_body, response_body, text) \
	X(response_body_encoding, response_body_encoding, text) \
	X(response_body_truncated, response_body_truncated, bool) \
	X(response_body_sha256, response_body_sha256, text) \
	X(response_body_blob, response_body_blob, text) \
	X(response_body_tail_blob, response_body_tail_blob, text) \
	X(upgrade, upgrade, text) \
	X(secrets, secrets, list) \
	X(stand_ins, stand_ins, list)

enum event_field {
#define EVENT_FIELD_ENUM(json, name, type) EVENT_F_##name,
	EVENT_FIELDS(EVENT_FIELD_ENUM)
#undef EVENT_FIELD_ENUM
		EVENT_N_FIELDS
};

#define EVENT_HAS_WORDS ((EVENT_N_FIELDS + 63) / 64)

struct event {
	enum event_kind kind;
	uint64_t seq;         /* the recorder's to give */
	int64_t guest_ns;     /* since the sandbox started */
	int64_t wall_ms;      /* the recorder's to give where 0 */
	int64_t pid, task;    /* as the sandbox numbers them; 0: not known or none */
	struct slice exec;    /* id; empty: none */
	struct slice sandbox; /* id; set by readers, the writer has its own */
	bool internal;        /* our own plumbing */
	uint64_t has[EVENT_HAS_WORDS];
#define EVENT_FIELD_MEMBER(json, name, type) event_##type name;
	EVENT_FIELDS(EVENT_FIELD_MEMBER)
#undef EVENT_FIELD_MEMBER
};

enum event_type {
	EVENT_TYPE_int,
	EVENT_TYPE_bool,
	EVENT_TYPE_text,
	EVENT_TYPE_list,
	EVENT_TYPE_errno,
	EVENT_TYPE_raw,
};

/* How to reach a field by its number: event_field_table[EVENT_F_path]. */
struct event_field_info {
	const char *name; /* as it stands in JSON */
	enum event_type type;
	size_t offset;
};
extern const struct event_field_info event_field_table[EVENT_N_FIELDS];

static inline bool event_has_field(const struct event *ev, enum event_field f)
{
	return ev->has[f / 64] >> (f % 64) & 1;
}

static inline void event_mark_field(struct event *ev, enum event_field f)
{
	ev->has[f / 64] |= 1ULL << (f % 64);
}

static inline void event_drop_field(struct event *ev, enum event_field f)
{
	ev->has[f / 64] &= ~(1ULL << (f % 64));
}

#define event_has(ev, name) event_has_field((ev), EVENT_F_##name)
#define event_set(ev, name, value) \
	do { \
		(ev)->name = (value); \
		event_mark_field((ev), EVENT_F_##name); \
	} while (0)
/* Sets a text field where there is text. */
#define event_set_text(ev, name, chars) \
	do { \
		const char *text_ = (chars); \
		if (text_) \
			event_set(ev, name, slice_of(text_)); \
	} while (0)

const char *event_kind_name(enum event_kind kind);
int event_kind_find(struct slice name, enum event_kind *ret_kind); /* -ENOENT */
/* Which journal an event is kept in: true for log.jsonl (execs, life cycle, rules and answers), false for the
 * trace. */
bool event_kind_is_log(enum event_kind kind);

const char *event_errno_name(int positive_errno); /* "ENOENT"; "E?" where unknown */
int event_errno_find(struct slice name);          /* the number, 0 where unknown */

#endif
