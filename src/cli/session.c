/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/launch.h"
#include "launcher/ledger.h"
#include "launcher/seal.h"
#include "util/mem.h"

static int gone(const struct session *session, struct err *err)
{
	return err_set(err, -EPIPE, "the supervisor of %s is gone: `cloche gc` mends what it left",
		session->id);
}

void session_serve_seal(struct session *session)
{
	struct err ignored; /* the supervisor goes on, and its record stays without an end for gc */

	if (seal_serve_one(session->seal_fd, session->key, session->cli->state_dir, session->id,
		    &ignored) < 0) {
		close(session->seal_fd);
		session->seal_fd = -1;
	}
}

int session_next(struct session *session, struct wire_frame *ret_frame)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = client_fd(session->client), .events = POLLIN},
			{.fd = session->seal_fd, .events = POLLIN}};
		int r = client_poll(session->client, ret_frame);

		if (r != -EAGAIN)
			return r;
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents)
			session_serve_seal(session);
	}
}

static int next_answer(struct session *session, json_t **ret_answer, struct err *err)
{
	struct wire_frame frame;
	int r;

	do {
		r = session_next(session, &frame);
	} while (r == 1 && frame.type != WIRE_JSON);
	if (r <= 0)
		return gone(session, err);
	*ret_answer = json_loadb(frame.payload.p, frame.payload.len, JSON_ALLOW_NUL, NULL);
	if (!*ret_answer)
		return err_set(err, -EBADMSG, "an answer of the supervisor is not JSON");
	return 0;
}

static int take_answer(struct session *session, json_t **ret_answer, struct err *err)
{
	json_t *answer = NULL;
	int r;

	do { /* "stdin" and the like are messages, not answers */
		json_decref(answer);
		answer = NULL;
		r = next_answer(session, &answer, err);
	} while (r == 0 && !json_object_get(answer, "ok"));
	if (r == 0)
		r = client_check(answer, err);
	if (r == 0 && ret_answer)
		*ret_answer = json_incref(answer);
	json_decref(answer);
	return r;
}

int session_ask(struct session *session, const char *request, struct slice body,
	json_t **ret_answer, struct err *err)
{
	scoped_secret struct str text = {0}; /* it may hold a proxy's credentials */
	int r;

	client_request(&text, request, body);
	r = client_send(session->client, WIRE_JSON, str_slice(&text));
	if (r < 0)
		return gone(session, err);
	return take_answer(session, ret_answer, err);
}

static void enter_ledger(const struct session *session, const struct spec *spec, const char *act)
{
	struct ledger_line line = {.act = act,
		.sandbox = session->id,
		.actor = session->cli->actor,
		.detail = spec->task,
		.owner = spec->owner_uid};
	struct err ignored;

	/* Its seals enter it too; a ledger that cannot be written shows in `cloche verify --all`. */
	(void)ledger_append(session->cli->state_dir, &line, &ignored);
}

/* lock_fd: of the one that goes on; -1: a new one. */
static int launch(struct session *session, int lock_fd, const struct spec *spec, struct err *err)
{
	const struct cli *cli = session->cli;
	struct launch launch;
	int r = lock_fd < 0 ? launch_start(cli->state_dir, cli->run_dir, spec, &launch, err)
	                    : launch_again(cli->state_dir, cli->run_dir, session->id, lock_fd, spec,
				      &launch, err);

	if (r < 0)
		return r;
	memcpy(session->id, launch.id, sizeof(session->id));
	session->client = client_adopt(launch.control_fd);
	session->seal_fd = launch.seal_fd;
	session->pid = launch.pid;
	return 0;
}

static int wake_key(const struct session *session, struct err *err)
{
	int r = hostkey_warm(session->key);

	if (r == -EKEYREJECTED)
		return err_set(err, r,
			"'%s/host.pub' is another key's than host.key: put the right one back, or "
			"remove it and it is made anew",
			session->cli->state_dir);
	return r < 0 ? err_set(err, r, "use the host key: %m") : 0;
}

static int start(struct session *session, int lock_fd, const struct spec *spec, struct err *err)
{
	const struct cli *cli = session->cli;
	int r = launch_make_state(cli->state_dir, err);

	/* First, so that a key that is broken leaves nothing to clear away. */
	if (r == 0)
		r = hostkey_open(cli->state_dir, &session->key, err);
	if (r == 0)
		r = launch(session, lock_fd, spec, err);
	if (r == 0) {
		/* While it is being made we have the time to wake the key. */
		r = wake_key(session, err);
		if (r == 0)
			r = take_answer(session, NULL, err);
	}
	if (r < 0) {
		session_done(session);
		return r;
	}
	enter_ledger(session, spec, lock_fd < 0 ? "open" : "resume");
	return 0;
}

int session_start(
	struct session *session, const struct cli *cli, const struct spec *spec, struct err *err)
{
	*session = (struct session){.cli = cli, .seal_fd = -1};
	return start(session, -1, spec, err);
}

int session_start_again(struct session *session, const struct cli *cli, const char *id, int lock_fd,
	const struct spec *spec, struct err *err)
{
	*session = (struct session){.cli = cli, .seal_fd = -1};
	memccpy(session->id, id, '\0', sizeof(session->id) - 1);
	return start(session, lock_fd, spec, err);
}

int session_connect(struct session *session, const struct cli *cli, const char *id, struct err *err)
{
	*session = (struct session){.cli = cli, .seal_fd = -1};
	memccpy(session->id, id, '\0', sizeof(session->id) - 1);
	return client_connect(cli->state_dir, id, &session->client, err);
}

/* One that is ending already has no ear for it. */
static void give_up(struct session *session)
{
	scoped_str struct str text = {0};

	client_request(&text, "stop", slice_of("{\"reason\":\"what started it gave up\"}"));
	(void)client_send(session->client, WIRE_JSON, str_slice(&text));
}

void session_done(struct session *session)
{
	struct wire_frame frame;

	if (session->pid > 0) {
		give_up(session);
		/* Its side of the socket ends with it; what it wants signed until then is signed. */
		while (session_next(session, &frame) > 0)
			;
		while (waitpid(session->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	client_free(session->client);
	hostkey_free(session->key);
	if (session->seal_fd >= 0)
		close(session->seal_fd);
	*session = (struct session){.seal_fd = -1};
}

static _Noreturn void keep(struct session *session)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int seal = fcntl(session->seal_fd, F_DUPFD_CLOEXEC, 3);
	struct err ignored;

	setsid();
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NAME, "cloche-keeper");
	for (int fd = 0; fd < 3; fd++)
		(void)dup2(null, fd);
	(void)dup2(seal, 3);
	(void)close_range(4, ~0U, 0);
	(void)chdir("/");
	while (seal_serve_one(3, session->key, session->cli->state_dir, session->id, &ignored) == 0)
		;
	_exit(0);
}

int session_keep(struct session *session, struct err *err)
{
	pid_t pid = fork();
	int r;

	if (pid < 0)
		return err_set(err, -errno, "start the keeper of the host key: %m");
	if (pid == 0)
		keep(session);
	r = session_ask(session, "keep", slice_of(""), NULL, err);
	if (r < 0)
		return r;
	session->pid = 0; /* it stays */
	close(session->seal_fd);
	session->seal_fd = -1;
	return 0;
}
