/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks for which preview, and may he? A request goes through these, each of which may answer instead:
 *
 *   its host -> our own paths -> what the store says (a worker, unless that is known) -> pass, origin, state
 *   -> a connection inside (a worker, unless there is one) -> preview_pipe.c
 *
 * A job outlives its connection: it ends for nobody then. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/preview_internal.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/scoped.h"

#define OURS "/.cloche"

struct preview_job {
	struct work work;
	struct preview_conn *conn; /* NULL: it has gone */
	struct previews *all;
	char id[ID_SIZE], key[ID_SIZE], from[64], token[PREVIEW_TOKEN_SIZE];
	struct preview_sight sight;
	int r; /* of what was asked for, and in err why */
	int fd;
	struct err err;
};

static void say_missing(struct preview_conn *conn)
{
	preview_conn_say(conn, 404, "There is no such preview",
		"Nothing is shown at this name: it was never made, or it was removed.");
}

static void say_not_now(struct preview_conn *conn)
{
	preview_conn_say(conn, 503, "Not now",
		"The control plane could not look after this just now. Try again in some "
		"seconds.");
}

/* ---- jobs ---- */

void preview_door_forget(struct preview_conn *conn)
{
	if (conn->job)
		conn->job->conn = NULL;
	conn->job = NULL;
}

static struct preview_job *job_new(struct preview_conn *conn, const char *key)
{
	struct preview_job *job = new0(struct preview_job);

	job->conn = conn;
	job->all = conn->all;
	job->fd = -1;
	snprintf(job->id, sizeof(job->id), "%s", conn->id);
	snprintf(job->key, sizeof(job->key), "%s", key);
	snprintf(job->from, sizeof(job->from), "%s", conn->peer.address);
	job->sight.preview = conn->preview;
	return job;
}

/* From here on it is a worker's, until done. */
static void start(
	struct preview_job *job, void (*run)(struct work *work), void (*done)(struct work *work))
{
	job->conn->job = job;
	preview_conn_set_state(job->conn, PREVIEW_ASKING);
	job->work = (struct work){.run = run, .done = done};
	workers_add(job->all->workers, &job->work);
}

/* The connection that waits for it, or NULL. */
static struct preview_conn *finish(struct preview_job *job)
{
	struct preview_conn *conn = job->conn;

	if (conn)
		conn->job = NULL;
	return conn;
}

/* ---- the way in ---- */

static void run_reach(struct work *work)
{
	struct preview_job *job = (struct preview_job *)work;

	job->r = preview_look_reach(job->all->server, &job->sight.preview, job->from, &job->err);
	if (job->r >= 0)
		job->fd = job->r;
}

static void say_refused(struct preview_conn *conn)
{
	scoped_str struct str text = {0};

	str_printf(&text,
		"Nothing listens at port %u of the sandbox. Start the server inside, on 127.0.0.1, "
		"::1 or all addresses, and load this page again.",
		conn->preview.port);
	preview_conn_say(conn, 502, "Nothing listens there", text.p);
}

static void say_paused(struct preview_conn *conn)
{
	preview_conn_say(conn, 503, "The sandbox is paused",
		"Nothing in it runs until it is woken. Load this page again then.");
}

static void say_not_running(struct preview_conn *conn)
{
	preview_conn_say(conn, 503, "The sandbox does not run",
		"It is suspended, or just starting or ending. Load this page again when it runs.");
}

static void say_failure(struct preview_conn *conn, int r)
{
	switch (-r) {
	case ECONNREFUSED:
		say_refused(conn);
		return;
	case EBUSY:
		say_paused(conn);
		return;
	case ENOENT:
	case EHOSTUNREACH:
		say_not_running(conn);
		return;
	case EOPNOTSUPP:
		preview_conn_say(conn, 502, "The sandbox has no network",
			"It was made without one, so nothing leads to its ports.");
		return;
	default:
		say_not_now(conn);
	}
}

static void reach_done(struct work *work)
{
	struct preview_job *job = (struct preview_job *)work;
	struct preview_conn *conn = finish(job);

	if (conn && job->r >= 0) {
		conn->inside = bufferevent_socket_new(
			conn->all->server->base, job->fd, BEV_OPT_CLOSE_ON_FREE);
		job->fd = -1;
		memcpy(conn->inside_id, conn->id, sizeof(conn->inside_id));
		preview_pipe_begin(conn);
	} else if (conn) {
		say_failure(conn, job->r);
	}
	if (conn)
		preview_conn_settle(conn);
	scoped_close(&job->fd);
	free(job);
}

/* Connections that have one inside, or are about to. */
static size_t count_of(const struct preview_conn *own)
{
	size_t n = 0;

	for (const struct preview_conn *conn = own->all->first; conn; conn = conn->next)
		n += conn != own && (conn->inside || conn->job) && strcmp(conn->id, own->id) == 0;
	return n;
}

void preview_door_reach(struct preview_conn *conn)
{
	preview_conn_drop_inside(conn);
	if (count_of(conn) >= PREVIEW_CONNS_OF)
		preview_conn_say(conn, 503, "Too many at once",
			"As many connections lead to this preview as it may have. Try again "
			"later.");
	else
		start(job_new(conn, ""), run_reach, reach_done);
}

/* ---- may it? ---- */

bool preview_door_still(
	const struct preview_conn *conn, const struct preview_sight *sight, int64_t now_s)
{
	if (!sight->is_there || strcmp(sight->preview.round, conn->preview.round) != 0)
		return false;
	return sight->preview.is_public || (sight->key_stands && conn->pass.expires_s > now_s);
}

static bool has_good_pass(const struct preview_conn *conn, const struct preview_sight *sight)
{
	return conn->has_pass && sight->key_stands &&
	       strcmp(conn->pass.round, sight->preview.round) == 0;
}

/* False: it was answered. */
static bool is_let_in(struct preview_conn *conn, const struct preview_sight *sight)
{
	bool is_private = !sight->preview.is_public;

	if (is_private && !has_good_pass(conn, sight)) {
		preview_conn_say(conn, 403, "This preview is private",
			"Open it by a link from the dashboard, or by the URL that POST "
			"/v1/previews/{preview}/token answers with. A link is good once, and for "
			"half a "
			"minute.");
		return false;
	}
	if (is_private && !preview_pass_is_at_home(&conn->head)) {
		preview_conn_say(conn, 403, "A page from elsewhere asked",
			"This preview is private: pages of other origins may link to it, and load "
			"nothing of it.");
		return false;
	}
	if (preview_pass_is_service_worker(&conn->head)) {
		preview_conn_say(conn, 403, "No service workers",
			"Previews have none: one would see the link of whoever opens it next.");
		return false;
	}
	return true;
}

static bool is_running(struct preview_conn *conn, const char *state)
{
	if (strcmp(state, "running") == 0)
		return true;
	if (strcmp(state, "ended") == 0 || !*state)
		preview_conn_say(
			conn, 410, "The sandbox has ended", "What it showed here is gone with it.");
	else if (strcmp(state, "paused") == 0)
		say_paused(conn);
	else
		say_not_running(conn);
	return false;
}

/* What is looked up for it, and so what tells of its right from then on: also of what is public now, where the pass counts for
 * nothing. */
static const char *key_of(const struct preview_conn *conn)
{
	return conn->has_pass ? conn->pass.key : "";
}

static void judge(struct preview_conn *conn, const struct preview_sight *sight)
{
	if (!sight->is_there) {
		say_missing(conn);
		return;
	}
	if (!is_let_in(conn, sight) || !is_running(conn, sight->state))
		return;
	conn->preview = sight->preview;
	snprintf(conn->key, sizeof(conn->key), "%s", key_of(conn));
	if (conn->inside && !conn->is_ended && strcmp(conn->inside_id, conn->id) == 0)
		preview_pipe_begin(conn);
	else
		preview_door_reach(conn);
}

static void run_look(struct work *work)
{
	struct preview_job *job = (struct preview_job *)work;

	job->r = preview_look(job->all->server, job->id, job->key, &job->sight, &job->err);
}

static void look_done(struct work *work)
{
	struct preview_job *job = (struct preview_job *)work;
	struct preview_conn *conn = finish(job);

	if (job->r == 0)
		previews_learn(job->all, job->id, job->key, &job->sight);
	if (conn && job->r == 0)
		judge(conn, &job->sight);
	else if (conn)
		say_not_now(conn);
	if (conn)
		preview_conn_settle(conn);
	free(job);
}

static void look(struct preview_conn *conn)
{
	const char *key = key_of(conn);
	const struct preview_sight *sight = previews_known(conn->all, conn->id, key);

	if (sight)
		judge(conn, sight);
	else
		start(job_new(conn, key), run_look, look_done);
}

/* ---- a link is opened ---- */

static void run_open(struct work *work)
{
	struct preview_job *job = (struct preview_job *)work;
	struct server *server = job->all->server;

	job->r = preview_look(server, job->id, "", &job->sight, &job->err);
	if (job->r == 0 && job->sight.is_there)
		job->r = preview_look_spend(
			server, &job->sight.preview, job->token, job->key, &job->err);
	explicit_bzero(job->token, sizeof(job->token));
}

/* To the preview's first page, without the token in what the browser remembers. */
static void let_in(struct preview_conn *conn, const struct preview_job *job)
{
	scoped_str struct str out = {0};

	exchange_add_start(&out, 303, NULL, false);
	http1_add_field(&out, slice_of("Location"), slice_of("/"));
	if (preview_pass_add_cookie(conn->all->server->secrets, &job->sight.preview, job->key,
		    clock_wall_ms() / 1000, conn->all->place.is_tls, &out, NULL) < 0) {
		say_not_now(conn);
		return;
	}
	exchange_add_length(&out, 0);
	if (conn->is_last)
		http1_add_field(&out, slice_of("Connection"), slice_of("close"));
	http1_add_end(&out);
	preview_conn_answer(conn, &out);
}

static void say_spent(struct preview_conn *conn)
{
	preview_conn_say(conn, 403, "This link is not good",
		"A link to a private preview is good once, and for half a minute. Ask for another "
		"one.");
}

static void open_done(struct work *work)
{
	struct preview_job *job = (struct preview_job *)work;
	struct preview_conn *conn = finish(job);

	if (conn && job->r == -ENOENT)
		say_spent(conn);
	else if (conn && job->r < 0)
		say_not_now(conn);
	else if (conn && !job->sight.is_there)
		say_missing(conn);
	else if (conn)
		let_in(conn, job);
	if (conn)
		preview_conn_settle(conn);
	free(job);
}

static void open_link(struct preview_conn *conn)
{
	struct slice token = preview_pass_token_in(conn->head.target);
	struct preview_job *job;

	if (!token.p) {
		say_spent(conn);
		return;
	}
	job = job_new(conn, "");
	memcpy(job->token, token.p, token.len); /* of that length, and zero behind it */
	start(job, run_open, open_done);
}

static void answer_ours(struct preview_conn *conn, struct slice path)
{
	conn->lingers |= conn->head.framing != HTTP1_NO_BODY;
	conn->is_last |= conn->lingers;
	if (!slice_is(path, OURS "/open"))
		preview_conn_say(conn, 404, "There is nothing here",
			"What is at /.cloche/ is the control plane's.");
	else if (!slice_is(conn->head.method, "GET"))
		preview_conn_say(conn, 405, "Not by this method", "A link is opened by GET.");
	else
		open_link(conn);
}

/* ---- what is asked for ---- */

/* http://HOST/PATH is as /PATH, where HOST is the one in Host. */
static bool make_relative(struct http1_head *head)
{
	struct slice scheme, authority, path;

	if (head->target.p[0] == '/')
		return true;
	if (slice_is(head->method, "CONNECT") || slice_is(head->target, "*") ||
		http1_split_absolute(head->target, &scheme, &authority, &path) < 0 ||
		!slice_eq(authority, head->host) || path.len == 0 || *path.p != '/')
		return false;
	head->target = path;
	return true;
}

static bool read_host(struct preview_conn *conn)
{
	struct slice host;
	uint16_t port;

	return conn->head.host.p && http1_split_host(conn->head.host, &host, &port) == 0 &&
	       preview_read_host(host, conn->all->place.domain, conn->id);
}

void preview_door_enter(struct preview_conn *conn)
{
	struct http1_head *head = &conn->head;
	struct slice path;
	const char *mark;

	if (!read_host(conn)) {
		conn->id[0] = '\0';
		say_missing(conn);
		return;
	}
	if (!make_relative(head) || slice_is(head->method, "TRACE")) {
		preview_conn_say(conn, 400, "This request cannot be read",
			"It asks for something that no page of a preview is.");
		return;
	}
	path = head->target;
	mark = memchr(path.p, '?', path.len);
	path.len = mark ? (size_t)(mark - path.p) : path.len;
	if (slice_is(path, OURS) || slice_starts(path, OURS "/")) {
		answer_ours(conn, path);
		return;
	}
	conn->has_pass = preview_pass_find(conn->all->server->secrets, conn->id, head,
				 clock_wall_ms() / 1000, conn->all->place.is_tls, &conn->pass) == 0;
	look(conn);
}
