/* SPDX-License-Identifier: Apache-2.0 */
/* cloche-launcher: not for people; `cloche serve` becomes it. Root's small half of a control plane: opens the sockets,
 * starts the half that faces the network (cloche-serve, without rights) and does for it what office.c has in its table.
 *
 *   cloche-launcher STATE RUN    descriptor 3: its settings, a JSON object (docs/server.md); sockets that were passed behind it
 *
 * Sandboxes are nobody's children: they outlive both halves. A cloche-serve that dies is started again with the same
 * sockets, so that nobody who connects meanwhile is refused. SIGHUP: certificate and key are read anew. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/launch.h"
#include "launcher/listeners.h"
#include "launcher/mend.h"
#include "launcher/notify.h"
#include "launcher/serve_process.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/scoped.h"

#define SETTINGS_FD  3
#define SETTINGS_MAX (1u << 20)
#define FAST_S       5 /* a process that ends within this long of its start */
#define FAST_MAX     5 /* so often in a row: it will not get better */
#define MEND_MS      30000
#define AGAIN_MS     1000 /* until one whose database was away is started again */
#define FAILURE      125

struct launcher {
	struct office office;
	struct serve_process serve;
	json_t *settings;
	int signals;
	int manager; /* notify.h; -1: nobody wants to know */
	unsigned n_fast;
	bool is_due;  /* to be started again, when nothing else happens for AGAIN_MS */
	bool is_once; /* it makes the index again, and its status is ours */
	int status;
};

static int read_settings(json_t **ret, struct err *err)
{
	scoped_str struct str text = {0};
	const char *form;
	json_error_t why;
	int r = fdio_read_all(SETTINGS_FD, SETTINGS_MAX, &text);

	if (r < 0)
		return err_set(err, r, "read the settings: %m");
	close(SETTINGS_FD);
	*ret = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, &why);
	if (!json_is_object(*ret))
		return err_set(err, -EINVAL, "the settings are no JSON object: %s", why.text);
	form = json_string_value(json_object_get(*ret, "log"));
	log_set_json(form && strcmp(form, "json") == 0);
	return 0;
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void renew(struct launcher *l)
{
	struct err err = {0};
	int r = serve_process_renew(&l->serve, l->settings, &err);

	if (r < 0)
		log_warn("the certificate that was used so far stays: %s", err.msg);
	if (r <= 0)
		notify_send(l->manager, "READY=1");
}

static void on_ready(void *ctx, const char *why)
{
	struct launcher *l = ctx;

	if (why)
		log_warn("the certificate that was used so far stays: %s", why);
	if (serve_process_heard(&l->serve, !why))
		renew(l);
	else
		notify_send(l->manager, "READY=1");
}

static int prepare(struct launcher *l, char **argv, struct err *err)
{
	int r = read_settings(&l->settings, err);

	l->manager = notify_open();
	l->office.state_dir = argv[1];
	l->office.run_dir = argv[2];
	l->office.on_ready = on_ready;
	l->office.ctx = l;
	l->office.config = json_object_get(l->settings, "config");
	l->is_once = json_object_get(l->settings, "reindex") != NULL;
	l->signals = open_signals();
	if (r == 0)
		r = launch_make_state(l->office.state_dir, err);
	if (r == 0)
		r = serve_process_prepare(&l->serve, &l->office, l->settings, err);
	if (r < 0)
		return r;
	/* What was killed while nobody was there. */
	if (!l->is_once && mend_all(l->office.state_dir, l->office.run_dir, 0, err) < 0)
		log_warn("%s", err->msg);
	return serve_process_start(&l->serve, err);
}

/* Started again, unless it dies as soon as it is. */
static int restart(struct launcher *l, int status, struct err *err)
{
	bool is_fast = time(NULL) - l->serve.started_s < FAST_S;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

	l->is_due = code == SERVE_PROCESS_NOT_NOW && serve_process_was_ready(&l->serve);
	if (l->is_due)
		return 0;
	if (code == SERVE_PROCESS_GIVES_UP || code == SERVE_PROCESS_NOT_NOW)
		return -ECANCELED; /* it has said why */
	l->n_fast = is_fast ? l->n_fast + 1 : 0;
	if (l->n_fast >= FAST_MAX)
		return err_set(err, -EIO, "cloche-serve ends as soon as it is started");
	log_warn("cloche-serve ended (%s %d), starting it again",
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return serve_process_start(&l->serve, err);
}

/* 1: that was all. */
static int end_once(struct launcher *l, int status)
{
	l->status = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : FAILURE;
	return 1;
}

static int reap(struct launcher *l, struct err *err)
{
	int status, r = 0;
	pid_t pid;

	while (r == 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == l->serve.pid) {
			serve_process_ended(&l->serve);
			r = l->is_once ? end_once(l, status) : restart(l, status, err);
		}
	return r;
}

/* 1: asked to end. */
static int on_signal(struct launcher *l, struct err *err)
{
	struct signalfd_siginfo info;
	bool is_end = false, is_renewal = false;

	while (read(l->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		is_end |= info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
		is_renewal |= info.ssi_signo == SIGHUP;
	}
	if (is_renewal) {
		notify_reloading(l->manager);
		renew(l);
	}
	return is_end ? 1 : reap(l, err);
}

/* By a child: one that is mended waits for the disk. */
static void mend(const struct launcher *l)
{
	if (fork() == 0) {
		mend_look(l->office.state_dir, l->office.run_dir);
		_exit(0);
	}
}

static int start_again(struct launcher *l, struct err *err)
{
	l->is_due = false;
	return serve_process_start(&l->serve, err);
}

static int work(struct launcher *l, struct err *err)
{
	int r = 0;

	while (r == 0) {
		struct pollfd fds[] = {{.fd = l->signals, .events = POLLIN},
			{.fd = l->serve.office_fd, .events = POLLIN}};

		int n = poll(fds, 2, l->is_due ? AGAIN_MS : MEND_MS);

		if (n < 0 && errno != EINTR)
			return err_set(err, -errno, "wait: %m");
		if (n == 0 && l->is_due)
			r = start_again(l, err);
		else if (n == 0 && !l->is_once)
			mend(l);
		if (fds[1].revents)
			serve_process_answer(&l->serve, &l->office);
		if (r == 0 && fds[0].revents)
			r = on_signal(l, err);
	}
	return r;
}

int main(int argc, char **argv)
{
	struct launcher l = {.signals = -1, .manager = -1, .serve = SERVE_PROCESS_NONE};
	struct err err = {0};
	int r;

	if (argc != 3 || fcntl(SETTINGS_FD, F_GETFD) < 0) {
		fprintf(stderr, "cloche-launcher is started by `cloche serve`\n");
		return 2;
	}
	prctl(PR_SET_DUMPABLE, 0);
	r = prepare(&l, argv, &err);
	if (r == 0)
		r = work(&l, &err);
	if (r < 0 && err.msg[0])
		log_warn("%s", err.msg);
	notify_send(l.manager, "STOPPING=1");
	serve_process_stop(&l.serve, &l.office);
	json_decref(l.settings);
	return r < 0 ? FAILURE : l.status;
}
