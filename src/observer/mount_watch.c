/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/mount_watch.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "observer/mount_files.h"
#include "observer/mount_unseen.h"
#include "util/clock.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/slice.h"

#define CLOSING_MAX 4096 /* inodes to be looked at */
#define LOOKS_MAX   8 /* rounds in which an inode is looked at, where none of its files was closed */
#define GONE_MAX    8 /* looks after which a file is given up that the kernel half does not know */
#define LINK_SIZE   32
#define LOOK_MS     20   /* between looks, where nothing else happens */
#define SEEN_SLOTS  1024 /* a power of two */
#define TOLD_MAX    8192 /* places in the kernel half's map that may be free by now */

/* A process that a record told of. */
struct seen {
	pid_t host_pid;
	uint32_t pid;
	bool internal;
	char exec[WIRE_ID_SIZE];
};

struct mount_watch {
	struct mount_watch_config config;
	struct mount_files *files;
	struct mount_unseen *unseen;
	struct map *told; /* addresses of files that were told to be closed */
	struct seen seen[SEEN_SLOTS];
	struct witness_event batch[WITNESS_BATCH];
	uint64_t inodes[WITNESS_BATCH];
	int n_batch;
	int64_t read_ns; /* guest_ns of the batch */
	bool is_more;    /* behind it */
	bool is_drained; /* no record and no event waits */
	struct mount_inode *closing[CLOSING_MAX];
	size_t n_closing;
	struct wire_look look;
	struct mount_file *looked[WIRE_LOOKS_MAX];
	size_t n_look;
	bool is_blind; /* it was told */
	bool is_full;  /* of unseen opens; it was told */
};

struct mount_watch *mount_watch_new(const struct mount_watch_config *config)
{
	struct mount_watch *w = new0(struct mount_watch);

	w->config = *config;
	w->files = mount_files_new();
	w->unseen = mount_unseen_new();
	w->told = map_new();
	return w;
}

/* The kernel half keeps a file's place until its address is used again; what was not, goes. A program may use it
 * again at this very moment: that file is then told without what was read and written. */
static void free_told(struct mount_watch *w)
{
	struct slice key;
	struct wire_open one;
	void *value;

	for (size_t i = 0; map_next(w->told, &i, &key, &value);)
		if (bpf_map_lookup_elem(w->config.opens_fd, key.p, &one) == 0 && one.opened_ns == 0)
			(void)bpf_map_delete_elem(w->config.opens_fd, key.p);
	map_free(w->told);
	w->told = map_new();
}

static void close_batch(struct mount_watch *w)
{
	for (int i = 0; i < w->n_batch; i++)
		scoped_close(&w->batch[i].fd);
	w->n_batch = 0;
}

void mount_watch_free(struct mount_watch *w)
{
	if (!w)
		return;
	close_batch(w);
	free_told(w);
	map_free(w->told);
	mount_files_free(w->files);
	mount_unseen_free(w->unseen);
	witness_free(w->config.witness);
	free(w);
}

int mount_watch_fd(const struct mount_watch *w)
{
	return witness_fd(w->config.witness);
}

static int64_t guest_now(const struct mount_watch *w)
{
	return clock_mono_ns() - w->config.start_ns;
}

/* ---- telling ---- */

static void tell_blind(struct mount_watch *w, const char *reason)
{
	struct event ev = {.kind = EVENT_TRACE_BLIND, .guest_ns = guest_now(w)};

	event_set_text(&ev, reason, reason);
	event_set_text(&ev, source_lost, "mounts");
	w->config.emit(w->config.ctx, &ev);
}

static void set_count(struct event *ev, const struct wire_count *count)
{
	event_set(ev, bytes_read, (int64_t)count->read);
	event_set(ev, bytes_written, (int64_t)count->written);
	if (count->flags & WIRE_COUNT_MAPPED_WRITE)
		event_set_text(ev, mapped, "write");
	else if (count->flags & WIRE_COUNT_MAPPED_READ)
		event_set_text(ev, mapped, "read");
	if (count->flags & WIRE_COUNT_CLONED)
		event_set(ev, cloned, true);
	if (count->flags & WIRE_COUNT_ASYNC)
		event_set(ev, asynchronous, true);
}

/* count: NULL where it is not known. */
static void tell_closed(struct mount_watch *w, struct mount_file *file,
	const struct wire_count *count, int64_t guest_ns, bool is_open)
{
	struct event ev = {.kind = EVENT_MOUNT_CLOSE,
		.guest_ns = guest_ns,
		.pid = file->pid,
		.task = file->task,
		.exec = slice_of(file->exec),
		.internal = file->internal};

	event_set_text(&ev, path, file->path);
	if (file->is_deleted)
		event_set_text(&ev, path_state, "deleted");
	event_set_text(&ev, access, file->access);
	if (count)
		set_count(&ev, count);
	if (is_open)
		event_set(&ev, open_at_end, true);
	w->config.emit(w->config.ctx, &ev);
	*map_slot(w->told, map_int_key((const unsigned long long *)&file->file)) = w;
	mount_files_remove(w->files, file);
	if (map_len(w->told) > TOLD_MAX)
		free_told(w);
}

static void add_closing(struct mount_watch *w, struct mount_inode *inode)
{
	inode->n_looks = 0;
	if (inode->is_closing || w->n_closing == CLOSING_MAX)
		return; /* the next close of it, or the end, comes back to it */
	inode->is_closing = true;
	w->closing[w->n_closing++] = inode;
}

/* ---- records ---- */

static void note_seen(
	struct mount_watch *w, const struct decode_head *head, const struct mount_watch_who *who)
{
	struct seen *seen = &w->seen[head->host_pid & (SEEN_SLOTS - 1)];

	if (!head->pid || !head->host_pid)
		return;
	seen->host_pid = (pid_t)head->host_pid;
	seen->pid = head->pid;
	seen->internal = who->internal;
	(void)snprintf(seen->exec, sizeof(seen->exec), "%.*s", (int)who->exec.len, who->exec.p);
}

void mount_watch_record(
	struct mount_watch *w, const struct decode_head *head, const struct mount_watch_who *who)
{
	const struct wire_closed *closed = head->closed;
	struct mount_file *file;

	if (!closed) {
		note_seen(w, head, who);
		return;
	}
	file = mount_files_find(w->files, closed->file);
	if (file && file->opened_ns == closed->opened_ns)
		tell_closed(w, file, &closed->count, (int64_t)closed->head.ns - w->config.start_ns,
			false);
}

static const char *constant_access(const struct event *ev)
{
	static const char *const words[] = {"read", "write", "read_write"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (slice_is(ev->access, words[i]))
			return words[i];
	return "none";
}

static void note_open(struct mount_watch *w, const struct decode_head *head,
	const struct mount_watch_who *who, const struct event *ev)
{
	struct mount_file one = {.file = head->file,
		.opened_ns = head->ns,
		.access = constant_access(ev),
		.pid = ev->pid,
		.task = ev->task,
		.internal = who->internal};
	struct mount_file *before = mount_files_find(w->files, head->file);

	if (before) /* the record that told its end was lost */
		tell_closed(w, before, NULL, ev->guest_ns, false);
	if (slice_is(ev->path_state, "deleted"))
		one.is_deleted = true;
	(void)snprintf(one.exec, sizeof(one.exec), "%.*s", (int)who->exec.len, who->exec.p);
	(void)mount_files_add(w->files, head->inode, &one, ev->path);
}

void mount_watch_event(struct mount_watch *w, const struct decode_head *head,
	const struct mount_watch_who *who, const struct event *ev)
{
	bool is_closed = false;

	if (event_has(ev, result))
		return;
	if (head->inode && (ev->kind == EVENT_FILE_OPEN || ev->kind == EVENT_PROCESS_EXEC)) {
		mount_files_opener(w->files, head->inode, (pid_t)head->host_pid);
		is_closed = mount_unseen_settle(w->unseen, head->inode, (pid_t)head->host_pid);
	}
	if (ev->kind == EVENT_FILE_OPEN && head->file) {
		note_open(w, head, who, ev);
		if (is_closed)
			add_closing(w, mount_files_inode(w->files, head->inode));
	} else if (ev->kind == EVENT_FILE_RENAME) {
		mount_files_renamed(w->files, ev->from, ev->to, event_has(ev, exchange));
	} else if (ev->kind == EVENT_FILE_DELETE) {
		mount_files_deleted(w->files, ev->path);
	}
}

/* ---- looking ---- */

static void take_answer(struct mount_watch *w, struct mount_file *file,
	const struct wire_look_item *item, bool is_end)
{
	struct mount_inode *inode = file->inode;

	if (item->state == WIRE_LOOK_GONE) {
		if (is_end || (w->is_drained && ++file->n_gone >= GONE_MAX))
			tell_closed(w, file, NULL, guest_now(w), false);
	} else if (item->state == WIRE_LOOK_CLOSED || is_end) {
		inode->n_looks = LOOKS_MAX; /* it was this one */
		tell_closed(w, file, &item->count, is_end ? guest_now(w) : w->read_ns,
			item->state == WIRE_LOOK_OPEN);
	}
}

static bool run_look(struct mount_watch *w)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &w->look, .ctx_size_in = sizeof(w->look));
	bool is_done = bpf_prog_test_run_opts(w->config.look_fd, &opts) == 0;

	if (!is_done && !w->is_blind) {
		w->is_blind = true;
		tell_blind(w, "open files on mounts cannot be looked at: what was read and written "
			      "is not "
			      "known");
	}
	return is_done;
}

static void flush_looks(struct mount_watch *w, bool is_end)
{
	size_t n = w->n_look;

	if (n == 0)
		return;
	for (size_t i = n; i < WIRE_LOOKS_MAX; i++)
		w->look.items[i].what = WIRE_LOOK_NONE;
	w->n_look = 0;
	if (!run_look(w))
		for (size_t i = 0; i < n; i++)
			w->look.items[i].state = WIRE_LOOK_GONE;
	for (size_t i = 0; i < n; i++)
		take_answer(w, w->looked[i], &w->look.items[i], is_end);
}

static void look_at(struct mount_watch *w, struct mount_file *file, bool is_end)
{
	w->looked[w->n_look] = file;
	w->look.items[w->n_look++] = (struct wire_look_item){.file = file->file,
		.opened_ns = file->opened_ns,
		.what = is_end ? WIRE_LOOK_END : WIRE_LOOK_FILE};
	if (w->n_look == WIRE_LOOKS_MAX)
		flush_looks(w, is_end);
}

static void look_at_inode(struct mount_watch *w, struct mount_inode *inode)
{
	struct mount_file *next;

	for (struct mount_file *file = inode->files; file; file = next) {
		next = file->next;
		look_at(w, file, false);
	}
}

/* Those of which none was found closed stay: the one whose close it was may not have been told yet. */
static void look_at_closing(struct mount_watch *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n_closing; i++)
		look_at_inode(w, w->closing[i]);
	flush_looks(w, false);
	for (size_t i = 0; i < w->n_closing; i++) {
		struct mount_inode *inode = w->closing[i];

		if (inode->files && ++inode->n_looks < LOOKS_MAX)
			w->closing[n++] = inode;
		else
			inode->is_closing = false;
	}
	w->n_closing = n;
}

/* ---- the witness ---- */

/* The numbers of the inodes behind the descriptors that came. */
static void find_inodes(struct mount_watch *w)
{
	for (int at = 0; at < w->n_batch; at += WIRE_LOOKS_MAX) {
		int n = w->n_batch - at < WIRE_LOOKS_MAX ? w->n_batch - at : WIRE_LOOKS_MAX;

		memset(&w->look, 0, sizeof(w->look));
		for (int i = 0; i < n; i++)
			if (w->batch[at + i].fd >= 0)
				w->look.items[i] = (struct wire_look_item){
					.file = (uint64_t)w->batch[at + i].fd,
					.what = WIRE_LOOK_INODE};
		(void)run_look(w); /* failed: it was told, and the numbers are 0 */
		for (int i = 0; i < n; i++)
			w->inodes[at + i] = w->look.items[i].inode;
	}
}

bool mount_watch_read(struct mount_watch *w)
{
	int n;

	close_batch(w);
	w->read_ns = guest_now(w);
	n = witness_read(w->config.witness, w->batch);
	if (n < 0 && !w->is_blind) {
		w->is_blind = true;
		tell_blind(w, "the witness of mounts cannot be read: closes are not told");
	}
	w->n_batch = n < 0 ? 0 : n;
	find_inodes(w);
	w->is_more = n == WITNESS_BATCH;
	return w->is_more;
}

static void look_at_all(struct mount_watch *w)
{
	struct mount_file *file;

	flush_looks(w, false);
	while ((file = mount_files_first(w->files))) {
		look_at(w, file, true);
		flush_looks(w, true);
	}
}

/* Whose it is, as far as that can be known of a process that may have ended. */
static void find_who(const struct mount_watch *w, pid_t host_pid, struct mount_unseen_open *open)
{
	const struct seen *seen = &w->seen[(uint32_t)host_pid & (SEEN_SLOTS - 1)];

	if (seen->host_pid == host_pid) {
		open->pid = seen->pid;
		open->internal = seen->internal;
		memcpy(open->exec, seen->exec, sizeof(open->exec));
		open->entered = !seen->exec[0] && !seen->internal;
	} else {
		open->pid = mount_unseen_pid(host_pid);
		open->entered = true;
	}
}

static void note_unseen(struct mount_watch *w, const struct witness_event *e, uint64_t inode)
{
	struct mount_unseen_open open = {
		.inode = inode, .host_pid = e->host_pid, .guest_ns = w->read_ns};
	char link[LINK_SIZE], path[PATH_MAX];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", e->fd);
	n = readlink(link, path, sizeof(path));
	if (n <= 0 || path[0] != '/')
		return;
	find_who(w, e->host_pid, &open);
	if (mount_unseen_add(w->unseen, &open, (struct slice){.p = path, .len = (size_t)n}))
		return;
	if (!w->is_full)
		tell_blind(w, "more files on mounts were opened unseen than can be kept");
	w->is_full = true;
}

static void take_witness(
	struct mount_watch *w, const struct witness_event *e, uint64_t inode_number)
{
	struct mount_inode *inode = mount_files_inode(w->files, inode_number);

	if (e->overflow) {
		tell_blind(w, "the witness of mounts lost events: the kernel's queue was full");
		return;
	}
	if (e->fd < 0 || inode_number == 0)
		return;
	if (e->opened && !(inode && mount_inode_has_opener(inode, e->host_pid)))
		note_unseen(w, e, inode_number);
	if (!e->closed)
		return;
	if (inode && inode->files)
		add_closing(w, inode);
	mount_unseen_closed(w->unseen, inode_number, e->closed_written);
}

static void tell_unseen(struct mount_watch *w, bool is_end)
{
	struct event ev;

	while (mount_unseen_next(w->unseen, is_end ? INT64_MAX : w->read_ns, &ev)) {
		w->config.emit(w->config.ctx, &ev);
		w->is_full = false;
	}
}

void mount_watch_join(struct mount_watch *w, bool is_empty)
{
	w->is_drained = is_empty && !w->is_more;
	for (int i = 0; i < w->n_batch; i++)
		take_witness(w, &w->batch[i], w->inodes[i]);
	close_batch(w);
	look_at_closing(w);
	if (!w->is_drained)
		return; /* who opened what is still to be compared */
	mount_files_turn(w->files);
	tell_unseen(w, false);
}

int mount_watch_wait_ms(const struct mount_watch *w)
{
	if (w->n_closing > 0)
		return LOOK_MS;
	return mount_unseen_waits(w->unseen) ? MOUNT_UNSEEN_NS / CLOCK_NS_PER_MS : -1;
}

void mount_watch_end(struct mount_watch *w)
{
	look_at_closing(w);
	look_at_all(w);
	tell_unseen(w, true);
}
