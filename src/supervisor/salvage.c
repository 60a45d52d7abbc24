/* SPDX-License-Identifier: Apache-2.0 */
/* Order matters: the box is killed and the ring drained before the record is closed, and the folder goes last,
 * so that whatever stops this half-way is taken up again by the next gc. */
#include "supervisor/salvage.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "control/rest.h"
#include "observer/observer.h"
#include "record/reader.h"
#include "record/record.h"
#include "sandbox/sandbox.h"
#include "supervisor/end_changes.h"
#include "supervisor/resting.h"
#include "supervisor/seal_request.h"
#include "supervisor/trash.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/map.h"
#include "util/mem.h"
#include "util/path.h"

struct salvage {
	struct event_sink sink; /* first: emit gets back from it */
	struct record *record;
	int64_t last_guest_ns;
	bool has_stopped;   /* in the record */
	bool has_removed;   /* likewise */
	bool has_suspended; /* as the last that became of it */
	bool is_pending;    /* its changes were looked at, and some wait to be applied */
};

static void emit(struct event_sink *sink, struct event *ev)
{
	struct salvage *salvage = (struct salvage *)sink;

	if (!salvage->record)
		return; /* nowhere to put what a ring holds */
	if (ev->guest_ns == 0)
		ev->guest_ns = salvage->last_guest_ns;
	if (ev->wall_ms == 0)
		ev->wall_ms = clock_wall_ms();
	(void)record_emit(
		salvage->record, ev, NULL); /* a full disk: what is there stays readable */
}

static void free_starts(struct map *open)
{
	struct slice key;
	void *value;

	for (size_t i = 0; map_next(open, &i, &key, &value);)
		free(value);
	map_free(open);
}

/* Its start has no number, and an error takes the place of its end. */
static bool is_failed_operation(struct map *open, const struct event *ev)
{
	const int64_t *id = ev->kind == EVENT_SANDBOX_ERROR && ev->exec.len > 0
	                            ? map_find(open, ev->exec)
	                            : NULL;

	return id && *id == 0;
}

/* Execs that have a start and no end, by id; the row number is the value. */
static struct map *open_starts(const char *record_dir, struct salvage *salvage)
{
	scoped(reader) struct reader *reader = NULL;
	struct map *open = map_new();
	const struct event *ev;
	struct err err;

	if (reader_open(record_dir, &reader, &err) < 0)
		return open;
	while (reader_next(reader, &ev, &err) > 0) {
		if (ev->guest_ns > salvage->last_guest_ns)
			salvage->last_guest_ns = ev->guest_ns;
		if (ev->kind == EVENT_SANDBOX_STOPPED)
			salvage->has_stopped = true;
		if (ev->kind == EVENT_SANDBOX_REMOVED)
			salvage->has_removed = true;
		if (ev->kind == EVENT_SANDBOX_SUSPENDED || ev->kind == EVENT_SANDBOX_RESUMED)
			salvage->has_suspended = ev->kind == EVENT_SANDBOX_SUSPENDED;
		if (ev->kind == EVENT_EXEC_START) {
			void **slot = map_slot(open, ev->exec);

			free(*slot); /* a record that was tampered with may start it twice */
			*slot = mem_copy(&ev->id, sizeof(ev->id)); /* 0: an operation on files */
		} else if (ev->kind == EVENT_EXEC_END || is_failed_operation(open, ev)) {
			free(map_remove(open, ev->exec));
		}
	}
	return open;
}

static void say_interrupted(struct salvage *salvage, struct map *open)
{
	struct slice exec;
	void *id;

	for (size_t i = 0; map_next(open, &i, &exec, &id);) {
		bool is_row = *(int64_t *)id != 0;
		struct event ev = {
			.kind = is_row ? EVENT_EXEC_END : EVENT_SANDBOX_ERROR, .exec = exec};

		if (is_row) {
			event_set(&ev, id, *(int64_t *)id);
			event_set_text(&ev, operation, "exec");
			event_set(&ev, interrupted, true);
			event_set(&ev, slice_complete, false);
		}
		event_set_text(&ev, reason, "Cloche was killed while it ran");
		emit(&salvage->sink, &ev);
	}
}

/* Where the end stands there already, only its seal is missing, or a mender before us came that far. */
static void say_cut(struct salvage *salvage)
{
	struct record_mend mend = record_get_mend(salvage->record);
	struct event blind = {.kind = EVENT_TRACE_BLIND}, stopped = {.kind = EVENT_SANDBOX_STOPPED};
	scoped_mem char *reason =
		mem_printf("the supervisor was killed: %llu bytes of an unfinished line and"
			   " %llu events that were not on disk yet are lost",
			(unsigned long long)mend.torn_bytes, (unsigned long long)mend.lost);

	event_set_text(&blind, reason, reason);
	if (!salvage->has_stopped || mend.torn_bytes > 0 || mend.lost > 0)
		emit(&salvage->sink, &blind);
	event_set_text(&stopped, reason, "interrupted");
	if (!salvage->has_stopped)
		emit(&salvage->sink, &stopped);
}

static void say(struct salvage *salvage, enum event_kind kind, const char *reason)
{
	struct event ev = {.kind = kind};

	event_set_text(&ev, reason, reason);
	emit(&salvage->sink, &ev);
}

/* It rests, and goes on doing so: only what a kill kept out of the record comes in. */
static void say_suspended(struct salvage *salvage)
{
	if (!salvage->has_suspended)
		say(salvage, EVENT_SANDBOX_SUSPENDED,
			"Cloche was killed while it suspended or resumed it");
}

/* What is in the uppers and the folders when nothing runs any more. */
static void put_changes(struct salvage *salvage, const char *changes_dir)
{
	static const struct changes_rw_options nobody_watched;
	struct err err = {0};
	bool is_settled;
	int r = end_changes_put(salvage->record, changes_dir, &nobody_watched, &is_settled, &err);

	salvage->is_pending = !is_settled;
	if (r == 0 || r == -EEXIST)
		return;
	(void)err_wrap(&err, 0, "what was changed is not known");
	say(salvage, EVENT_SANDBOX_ERROR, err.msg);
}

/* `cloche rm` of one that rested; what a mender before us came to is not said again. */
static void say_removed(struct salvage *salvage)
{
	if (!salvage->has_stopped)
		say(salvage, EVENT_SANDBOX_STOPPED, "removed while it was suspended");
	if (!salvage->has_removed)
		say(salvage, EVENT_SANDBOX_REMOVED, NULL);
}

static void say_end(struct salvage *salvage, enum record_end end, const char *changes_dir)
{
	switch (end) {
	case RECORD_SUSPENDED:
		say_suspended(salvage);
		return;
	case RECORD_FINAL:
		put_changes(salvage, changes_dir);
		say_removed(salvage);
		return;
	case RECORD_OPEN:
	case RECORD_CUT:
		if (!salvage->has_stopped)
			put_changes(salvage, changes_dir);
		say_cut(salvage);
		return;
	}
}

static bool has_ended(const char *record_dir)
{
	scoped(reader) struct reader *reader = NULL;
	struct err ignored;

	return reader_open(record_dir, &reader, &ignored) == 0 && reader_has_ended(reader);
}

/* None: killed before it had one, or while it cleared away behind its last seal. Else another try would find the
 * same: no header after a power cut, or no file of ours where the owner of the record put something else. Verify
 * tells what is wrong with it. */
static bool is_beyond_mending(int r)
{
	return r == -ENOENT || r == -EBADMSG || r == -EINVAL || r == -ELOOP || r == -ENOTDIR ||
	       r == -EISDIR || r == -ENXIO;
}

/* *ret_is_pending: changes wait to be applied, as far as that was looked at. */
static int mend_record(const struct salvage_config *config, const char *record_dir,
	enum record_end end, bool *ret_is_pending, struct err *err)
{
	scoped_mem char *changes_dir = mem_printf("%s/changes/%s", config->state_dir, config->id);
	struct salvage salvage = {.sink.emit = emit};
	scoped_mem char *pins = mem_printf("%s/bpf", config->run_dir);
	struct map *open;
	int r;

	*ret_is_pending = false;
	r = has_ended(record_dir) ? -ENOENT : record_reopen(record_dir, &salvage.record, err);

	if (r < 0 && !is_beyond_mending(r))
		return r;
	if (r < 0) {
		if (r != -ENOENT)
			log_warn("the record of %s stays as it is: %s", config->id, err->msg);
		(void)observer_salvage(pins, config->id, &salvage.sink, err); /* as below */
		return 0;
	}
	open = open_starts(record_dir, &salvage);
	(void)observer_salvage(
		pins, config->id, &salvage.sink, err); /* no ring: nothing waits in it */
	(void)record_release_reserve(salvage.record);  /* it is for what follows */
	say_interrupted(&salvage, open);
	say_end(&salvage, end, changes_dir);
	free_starts(open);
	r = record_flush(salvage.record, true);
	if (r == 0)
		r = seal_request(config->seal_fd, salvage.record, config->id, end);
	record_free(salvage.record);
	*ret_is_pending = salvage.is_pending;
	return r < 0 && r != -ENOTCONN ? err_set(err, r, "close the record of %s: %m", config->id)
	                               : 0;
}

static bool is_suspended(const char *record_dir)
{
	scoped(reader) struct reader *reader = NULL;
	struct err ignored;

	return reader_open(record_dir, &reader, &ignored) == 0 && reader_is_suspended(reader);
}

/* One that rests: its files stay. -EBUSY where nothing is to be done. */
static int mend_resting(const struct salvage_config *config, const struct rest *rest,
	const char *dir, const char *record_dir, struct err *err)
{
	scoped_mem char *begun = mem_printf("%s/" REST_BEGUN, dir);
	bool ignored, is_in_order = rest->is_over
	                                    ? has_ended(record_dir)
	                                    : is_suspended(record_dir) && access(begun, F_OK) < 0;
	int r;

	if (is_in_order)
		return err_set(err, -EBUSY, "sandbox %s rests in order", config->id);
	sandbox_clean_running(config->id);
	/* Its files are kept before its record is closed: a kill may have come between the two. */
	r = mend_record(
		config, record_dir, rest->is_over ? RECORD_CUT : RECORD_SUSPENDED, &ignored, err);
	if (r == 0 && !rest->is_over)
		resting_settle(dir);
	return r;
}

static int mend_folder(const struct salvage_config *config, const char *dir, const char *record_dir,
	struct err *err)
{
	scoped(rest) struct rest *rest = NULL;
	int r = rest_read(dir, &rest, err);
	bool is_pending;

	if (r < 0 && r != -ENOENT)
		return r; /* its files are not to be thrown away for that */
	if (rest && !rest->is_wanted_gone)
		return mend_resting(config, rest, dir, record_dir, err);
	sandbox_clean_running(config->id);
	/* While its layers are there: the record has what it changed in its own root. */
	r = mend_record(config, record_dir, rest ? RECORD_FINAL : RECORD_CUT, &is_pending, err);
	/* While its folder is there: whoever is cut off here is followed by one who looks again. */
	if (r == 0 && !is_pending)
		end_changes_drop_settled(config->state_dir, config->id);
	if (r == 0)
		r = sandbox_clean(config->id, config->state_dir, dir, err);
	if (r < 0)
		return r;
	r = trash_remove(config->state_dir, dir, config->id);
	return r < 0 ? err_set(err, r, "remove '%s': %m", dir) : 0;
}

int salvage_sandbox(const struct salvage_config *config, struct err *err)
{
	scoped_mem char *dir = mem_printf("%s/sandboxes/%s", config->state_dir, config->id);
	scoped_mem char *record_dir = mem_printf("%s/records/%s", config->state_dir, config->id);
	scoped_mem char *lock = mem_printf("%s/lock", dir);
	scoped_fd int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_set(err, -errno, "open '%s': %m", lock);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, -EBUSY, "sandbox %s is alive", config->id);
	if (!fdio_is_at(fd, AT_FDCWD, lock))
		return err_set(err, -EBUSY, "another has removed sandbox %s", config->id);
	return mend_folder(config, dir, record_dir, err);
}
