/* SPDX-License-Identifier: Apache-2.0 */
/* In order: record, box, observer; then the first client hears "ready" and the loop runs. The end goes the
 * other way: whatever still runs is killed and its row written, the last events drained, what changed in the
 * box's own layer noted, the box removed, the last head signed. A supervisor that dies anywhere in between
 * leaves its folder behind, by which gc finds and mends it. */
#include "supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/rest.h"
#include "observer/witness.h"
#include "supervisor/end_changes.h"
#include "supervisor/metering.h"
#include "supervisor/network.h"
#include "supervisor/publish.h"
#include "supervisor/requests.h"
#include "supervisor/resting.h"
#include "supervisor/rights.h"
#include "supervisor/running.h"
#include "supervisor/rw_before.h"
#include "supervisor/sealer.h"
#include "supervisor/supervisor_internal.h"
#include "supervisor/tracing.h"
#include "supervisor/trash.h"
#include "util/aside.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/path.h"

#define SPEC_MAX      (16u << 20)
#define LAST_WORDS_MS 2000 /* for a client that is slow to take the end of its output */

void supervisor_end(struct supervisor *sup, const char *reason)
{
	if (sup->end_reason)
		return;
	sup->end_reason = mem_dup(reason);
	loop_stop(sup->loop);
}

static void on_event(void *ctx)
{
	struct supervisor *sup = ctx;

	if (sup->sealer)
		sealer_poke(sup->sealer);
}

static void on_file(void *ctx, const struct event *ev)
{
	struct supervisor *sup = ctx;

	if (sup->rw)
		rw_before_note(sup->rw, ev);
}

static void on_broken(void *ctx, int error)
{
	struct supervisor *sup = ctx;
	scoped_mem char *reason = mem_printf("the record cannot be written: %s", strerror(-error));

	if (error == -ENOSPC || error == -EDQUOT)
		(void)record_release_reserve(sup->record); /* room for the closing lines */
	supervisor_end(sup, reason);
}

static void drop_conn(struct supervisor *sup, struct conn *conn)
{
	for (size_t i = 0; i < sup->n_conns; i++) {
		if (sup->conns[i] != conn)
			continue;
		sup->conns[i] = sup->conns[--sup->n_conns];
		return;
	}
}

static void on_gone(void *ctx, struct conn *conn)
{
	struct supervisor *sup = ctx;

	for (size_t i = 0; i < sup->n_execs; i++)
		if (running_has_conn(sup->execs[i], conn))
			running_detach(sup->execs[i]);
	drop_conn(sup, conn);
	if (sup->lifeline == conn) {
		sup->lifeline = NULL;
		/* One that is resumed has files, which an interrupted resume may not cost. */
		sup->is_suspending = sup->before && (sup->is_suspending || !sup->end_reason);
		supervisor_end(sup, "whoever started it is gone");
	}
}

static void on_drained(void *ctx, struct conn *conn)
{
	struct running *running = conn_tag(conn);

	if (running)
		running_drained(running);
}

static void on_frame(void *ctx, struct conn *conn, const struct wire_frame *frame)
{
	requests_on_frame(ctx, conn, frame);
}

static void add_conn(struct supervisor *sup, int sock)
{
	struct conn_handler handler = {
		.on_frame = on_frame, .on_drained = on_drained, .on_gone = on_gone, .ctx = sup};

	if (sup->n_conns >= SUPERVISOR_MAX_CONNS) {
		close(sock);
		return;
	}
	sup->conns = mem_grow(sup->conns, sup->n_conns + 1, sizeof(struct conn *));
	sup->conns[sup->n_conns++] = conn_new(sup->loop, sock, &handler);
}

static void on_client(void *ctx, unsigned what)
{
	struct supervisor *sup = ctx;
	int sock = accept4(sup->listener, NULL, NULL, SOCK_CLOEXEC);

	if (sock >= 0)
		add_conn(sup, sock);
}

/* Bound through a descriptor of the folder: a socket's address is short, a state folder's path need not be. */
static int listen_in(struct supervisor *sup, struct err *err)
{
	scoped_fd int dir = open(sup->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	sup->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (dir < 0 || sup->listener < 0)
		return err_set(err, -errno, "open '%s': %m", sup->dir);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/control.sock", dir);
	(void)unlinkat(dir, "control.sock", 0); /* of an earlier life, cut off by a kill */
	if (bind(sup->listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(sup->listener, 64) < 0)
		return err_set(err, -errno, "listen on '%s/control.sock': %m", sup->dir);
	sup->listener_io = loop_io_new(sup->loop, sup->listener, LOOP_READ, on_client, sup);
	return 0;
}

static void on_init_gone(void *ctx, unsigned what)
{
	supervisor_end(ctx, "its first process was killed");
}

static void meta_json(
	const struct supervisor *sup, const struct supervisor_config *config, struct str *out)
{
	scoped_str struct str spec = {0};
	struct jsonw j = jsonw_to(out);
	char now[CLOCK_TEXT_LEN];

	spec_write_record(&spec, sup->spec);
	clock_format(clock_wall_ms(), now);
	jsonw_object(&j);
	jsonw_kint(&j, "v", EVENT_SCHEMA);
	jsonw_ktext(&j, "sandbox", sup->id);
	jsonw_ktext(&j, "created_at", now);
	jsonw_ktext(&j, "version", CLOCHE_VERSION);
	jsonw_key(&j, "host");
	jsonw_raw(&j, slice_of(config->host_json));
	jsonw_key(&j, "spec");
	jsonw_raw(&j, str_slice(&spec));
	jsonw_object_end(&j);
}

static int open_record(
	struct supervisor *sup, const struct supervisor_config *config, struct err *err)
{
	scoped_str struct str meta = {0};
	struct record_config record = {.dir = sup->record_dir,
		.id = sup->id,
		.owner_uid = sup->spec->owner_uid,
		.owner_gid = sup->spec->owner_gid,
		.raw = sup->spec->record_raw,
		.durable = sup->spec->durable};
	struct recorder_config recorder = {.start_ns = clock_mono_ns(),
		.on_event = on_event,
		.on_file = on_file,
		.on_broken = on_broken,
		.ctx = sup};
	int r;

	if (sup->before) {
		r = resting_open_record(sup, &record, config->seal_fd, err);
		recorder.start_ns -= sup->before->guest_ns;
	} else {
		meta_json(sup, config, &meta);
		record.meta = str_slice(&meta);
		r = record_create(&record, &sup->record, err);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < sup->spec->network.n_secrets; i++)
		if (sup->spec->network.secrets[i].stand_in)
			record_allow_text(
				sup->record, slice_of(sup->spec->network.secrets[i].stand_in));
	recorder.record = sup->record;
	sup->recorder = recorder_new(&recorder);
	return 0;
}

static void say(struct supervisor *sup, enum event_kind kind, const char *reason)
{
	struct event ev = {.kind = kind};

	event_set_text(&ev, reason, reason);
	recorder_emit_now(sup->recorder, &ev);
}

/* By the clock of one that rests, which stands until it is resumed; of a new one, at once. */
static void say_resting(struct supervisor *sup, enum event_kind kind, const char *reason)
{
	struct event ev = {.kind = kind, .guest_ns = sup->rested_ns};
	struct event_sink *sink = recorder_sink(sup->recorder);

	event_set_text(&ev, reason, reason);
	if (sup->rested_ns)
		sink->emit(sink, &ev);
	else
		recorder_emit_now(sup->recorder, &ev);
}

static void say_created(struct supervisor *sup)
{
	scoped_mem char *reason = NULL;

	if (sup->spec->forked_from)
		reason = mem_printf("forked from %s", sup->spec->forked_from);
	say(sup, EVENT_SANDBOX_CREATED, reason);
}

static int open_sandbox(
	struct supervisor *sup, const struct supervisor_config *config, struct err *err)
{
	const struct sandbox_before before = {.id_base = sup->before ? sup->before->id_base : 0,
		.guest_ns = sup->before ? sup->before->guest_ns : 0};
	struct sandbox_config sandbox = {.id = sup->id,
		.spec = sup->spec,
		.state_dir = sup->state_dir,
		.dir = sup->dir,
		.changes_dir = sup->changes_dir,
		.init_fd = config->init_fd,
		.before = sup->before ? &before : NULL,
		.trust_fd = config->trust_fd,
		.on_place = sup->network ? network_on_place : NULL,
		.on_mount = tracing_on_mount,
		.ctx = sup};
	int r;

	if (!sup->before)
		say_created(sup);
	r = sandbox_create(&sandbox, &sup->sandbox, err);
	if (r < 0) {
		say_resting(sup, EVENT_SANDBOX_ERROR, err->msg);
		return r;
	}
	recorder_set_start(sup->recorder, sandbox_start_ns(sup->sandbox));
	sup->init_io = loop_io_new(
		sup->loop, sandbox_init_pidfd(sup->sandbox), LOOP_READ, on_init_gone, sup);
	return 0;
}

static int read_spec(struct supervisor *sup, int fd, struct err *err)
{
	scoped_str struct str text = {0};
	int r = fdio_read_all(fd, SPEC_MAX, &text);

	close(fd);
	if (r < 0)
		return err_set(err, r, "read what was asked for: %m");
	return spec_read(str_slice(&text), &sup->spec, err);
}

static int start(struct supervisor *sup, const struct supervisor_config *config, struct err *err)
{
	/* First: whatever fails from here on costs one that goes on none of its files. */
	int r = resting_find(sup, err);

	if (r == 0)
		r = rights_keep(RIGHTS_CREATING, err);
	if (r == 0)
		r = read_spec(sup, config->spec_fd, err);
	if (r == 0)
		rw_before_start(sup);
	if (r == 0)
		r = open_record(sup, config, err);
	if (r == 0)
		r = publish_open(sup, err);
	if (r == 0)
		network_prepare(sup);
	if (r == 0)
		r = listen_in(sup, err);
	if (r == 0)
		r = open_sandbox(sup, config, err);
	if (r == 0)
		r = rights_keep(sup->network ? RIGHTS_RUNNING_NETWORK : RIGHTS_RUNNING, err);
	if (r == 0 && sup->before)
		r = resting_leave(sup, err);
	if (r < 0)
		return r;
	sup->sealer = sealer_new(sup, config->seal_fd);
	sup->sweep = trash_sweep_new(sup->loop, sup->state_dir);
	if (sup->before)
		say(sup, EVENT_SANDBOX_RESUMED, "asked to");
	tracing_start(sup);
	rw_before_wait(sup);
	if (!sup->before)
		say(sup, EVENT_SANDBOX_STARTED, NULL);
	if (sandbox_notice(sup->sandbox))
		say(sup, EVENT_HINT, sandbox_notice(sup->sandbox));
	if (sup->n_published > 0)
		network_open(sup); /* who comes in does not wait for the first exec */
	recorder_flush(sup->recorder, sup->spec->durable);
	return 0;
}

static void end_execs(struct supervisor *sup)
{
	for (size_t i = 0; i < sup->n_execs; i++)
		(void)running_kill(sup->execs[i]); /* all at once, then one by one */
	while (sup->n_execs > 0) {
		struct running *running = sup->execs[sup->n_execs - 1];

		running_end(running);
		if (sup->n_execs > 0 && sup->execs[sup->n_execs - 1] == running)
			running_free(running);
	}
}

/* Who asked for the end hears that it is done; who started the sandbox and did not, why it ended. */
static void answer_ends(struct supervisor *sup)
{
	while (sup->n_conns > 0) {
		struct conn *conn = sup->conns[--sup->n_conns];
		struct err why;

		if (conn_wants_end(conn) && sup->end_status < 0) {
			conn_answer_error(conn, sup->end_status, &sup->end_err);
		} else if (conn_wants_end(conn)) {
			conn_answer_ok(conn, slice_of(""));
		} else if (conn == sup->lifeline && sup->end_reason) {
			err_set(&why, -ECANCELED, "sandbox %s was ended: %s", sup->id,
				sup->end_reason);
			conn_answer_error(conn, -ECANCELED, &why);
		}
		conn_finish(conn, LAST_WORDS_MS);
		conn_free(conn);
	}
}

static void close_loop_ends(struct supervisor *sup)
{
	loop_io_free(sup->init_io);
	loop_io_free(sup->listener_io);
	if (sup->listener >= 0)
		close(sup->listener);
	sup->init_io = sup->listener_io = NULL;
	sup->listener = -1;
}

/* It could not be suspended or kept: then it ends, and whoever asked hears why. */
static void rest_failed(struct supervisor *sup, int r, struct err *err)
{
	struct err ignored;

	(void)err_wrap(err, r, "its files cannot be kept, so it ended");
	say(sup, EVENT_SANDBOX_ERROR, err->msg);
	if (sup->is_suspending)
		end_changes_save(sup); /* as at any other end */
	sup->is_suspending = false;
	sup->end_status = r;
	sup->end_err = *err;
	sandbox_free(take(&sup->sandbox));
	(void)sandbox_clean(sup->id, sup->state_dir, sup->dir, &ignored); /* gc goes on with it */
}

/* What is left of the box: for a while, for later forks, or not at all. Its layer goes with the folder: clear(). */
static void put_away(struct supervisor *sup)
{
	bool rests = sup->is_suspending || sup->spec->keep;
	struct err err = {0};
	int r;

	metering_finish(sup);
	if (!sup->is_suspending)
		end_changes_save(sup);
	if (!sup->is_suspending)
		rw_before_keep(sup);
	r = rests ? resting_enter(sup, !sup->is_suspending, &err) : 0;
	if (r < 0)
		rest_failed(sup, r, &err);
	else if (!rests)
		sandbox_destroy(sup->sandbox, true);
	sup->is_resting = rests && r == 0;
}

static bool close_record(struct supervisor *sup)
{
	enum record_end end = sup->is_suspending ? RECORD_SUSPENDED : RECORD_FINAL;

	recorder_say_lost(sup->recorder);
	if (sup->is_suspending) {
		say_resting(sup, EVENT_SANDBOX_SUSPENDED, sup->end_reason);
	} else {
		say(sup, EVENT_SANDBOX_STOPPED, sup->end_reason);
		say(sup, EVENT_SANDBOX_REMOVED, sup->is_resting ? "its layer is kept" : NULL);
	}
	recorder_flush(sup->recorder, sup->spec->durable);
	return sup->sealer && sealer_finish(sup->sealer, end);
}

/* Everything that was started is ended, in the record and in fact. */
static bool finish(struct supervisor *sup)
{
	bool is_sealed = false;

	close_loop_ends(sup);
	if (sup->sandbox) {
		end_execs(sup);
		sandbox_kill(sup->sandbox); /* daemons too: the last drain sees their end */
	}
	network_stop(sup);
	publish_close(sup);
	tracing_stop(sup);
	rw_before_stop(sup);
	if (sup->sandbox)
		put_away(sup);
	if (sup->recorder)
		is_sealed = close_record(sup);
	record_free(take(&sup->record));
	return is_sealed;
}

static void release(struct supervisor *sup)
{
	network_free(sup);
	scoped_close(&sup->proxy_fd);
	rw_before_free(sup->rw);
	sealer_free(sup->sealer);
	trash_sweep_free(sup->sweep);
	metering_free(sup->metering);
	recorder_free(sup->recorder);
	spec_free(sup->spec);
	loop_free(sup->loop);
	free(sup->conns);
	free(sup->execs);
	free(sup->end_reason);
	rest_free(sup->before);
	free(sup->first_network);
	witness_free(sup->witness);
	free(sup->witness_fault);
	free(sup->dir);
	free(sup->record_dir);
	free(sup->changes_dir);
}

static void init(struct supervisor *sup, const struct supervisor_config *config)
{
	*sup = (struct supervisor){.id = config->id,
		.state_dir = config->state_dir,
		.run_dir = config->run_dir,
		.listener = -1,
		.secrets_fd = config->secrets_fd,
		.proxy_fd = -1,
		.visits = {-1, -1},
		.next_row = 1};
	sup->dir = mem_printf("%s/sandboxes/%s", config->state_dir, config->id);
	sup->record_dir = mem_printf("%s/records/%s", config->state_dir, config->id);
	sup->changes_dir = mem_printf("%s/changes/%s", config->state_dir, config->id);
	sup->loop = loop_new();
	sup->metering = metering_new(sup);
	add_conn(sup, config->control_fd);
	sup->lifeline = sup->conns[0];
}

/* A sandbox that could not be made has done nothing: no record of it, no change sets. */
static void forget_all(const struct supervisor *sup)
{
	scoped_mem char *trash = mem_printf("%s/trash", sup->state_dir);
	scoped_mem char *record = mem_printf("%s.record", sup->id);

	end_changes_drop(sup->state_dir, sup->id);
	(void)aside_remove(trash, sup->record_dir, record, RECORD_LAST);
	(void)trash_remove(sup->state_dir, sup->dir, sup->id); /* what stays, gc removes */
}

/* Clears the disk. A record without its last seal keeps its sandbox's folder: gc signs its end as cut. */
static void clear(struct supervisor *sup, bool was_made, bool is_sealed)
{
	sandbox_free(take(&sup->sandbox));
	if (sup->is_resting && is_sealed)
		resting_settle(sup->dir);
	if (sup->is_resting)
		return;
	if (!was_made && !sup->before)
		forget_all(sup);
	if (is_sealed && sup->is_settled)
		end_changes_drop(sup->state_dir, sup->id);
	if (is_sealed)
		(void)trash_remove(sup->state_dir, sup->dir, sup->id); /* what stays, gc removes */
}

/* One that was to go on rests again, as it was. */
static void stay_at_rest(struct supervisor *sup, int seal_fd)
{
	if (!sup->sealer)
		sup->sealer = sealer_new(sup, seal_fd);
	sup->is_suspending = sup->is_resting = true;
	sup->end_reason = mem_dup("it could not be resumed");
}

int supervisor_main(const struct supervisor_config *config)
{
	struct supervisor sup;
	struct err err = {0};
	bool is_sealed;
	int r;

	init(&sup, config);
	r = start(&sup, config, &err);
	if (r < 0) {
		conn_answer_error(sup.conns[0], r, &err);
		if (sup.before)
			stay_at_rest(&sup, config->seal_fd);
		else
			sup.end_reason = mem_dup("it could not be made");
	} else {
		conn_answer_ok(sup.conns[0], slice_of(""));
		loop_run(sup.loop);
	}
	is_sealed = finish(&sup);
	answer_ends(&sup);
	clear(&sup, r == 0, is_sealed);
	release(&sup);
	return r;
}
