/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/serve_process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/plane_socket.h"
#include "launcher/hostkey.h"
#include "launcher/listeners.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/program.h"
#include "util/scoped.h"

#define USER_DEFAULT  "cloche-serve"
#define UID_DEFAULT   64736 /* where no such user was made; outside of what systems give away */
#define PREVIEWS_NAME "previews" /* of a socket that was passed for them */
#define PEM_MAX       (256u << 10)
#define STOP_MS       20 /* from look to look, whether it has ended */

/* Descriptors of the started process: see server/main.c. What comes over OFFICE_AT: server/launcher_told.c. */
#define SETTINGS_AT 3
#define OFFICE_AT   4
#define SOCKETS_AT  5
#define OURS_FROM   64    /* ours lie above all of them */
#define FILES_MAX   65536 /* clients, and two descriptors for each sandbox that is followed */

static const char *text_of(const json_t *settings, const char *key)
{
	return json_string_value(json_object_get(settings, key));
}

static int find_user(struct serve_process *serve, const char *name, struct err *err)
{
	const struct passwd *user = getpwnam(name ? name : USER_DEFAULT);

	if (!user && name)
		return err_set(err, -ENOENT, "there is no user '%s'", name);
	if (user && user->pw_uid == 0)
		return err_set(err, -EINVAL, "'%s' is root: want a user without rights", name);
	serve->uid = user ? user->pw_uid : UID_DEFAULT;
	serve->gid = user ? user->pw_gid : UID_DEFAULT;
	return 0;
}

static int add_socket(struct serve_process *serve, int fd, const char *kind)
{
	json_t *sockets = json_object_get(serve->settings, "sockets");
	int high;

	if (fd < 0)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, OURS_FROM);
	close(fd);
	if (high < 0)
		return -errno;
	json_array_append_new(sockets, json_string(kind));
	serve->sockets[serve->n_sockets++] = high;
	return 0;
}

static int take_passed(struct serve_process *serve, const json_t *names, struct err *err)
{
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i)) ?: "";
		int fd = SERVE_PROCESS_PASSED + (int)i;
		bool is_unix = false;
		int r = listeners_check_passed(fd, name, &is_unix, err);

		if (r == 0)
			r = add_socket(serve, fd,
				is_unix                            ? "unix"
				: strcmp(name, PREVIEWS_NAME) == 0 ? "previews"
								   : "tcp");
		if (r < 0)
			return r;
	}
	return 0;
}

static int open_sockets(struct serve_process *serve, const struct office *office,
	const json_t *settings, struct err *err)
{
	const json_t *listen = json_object_get(settings, "listen");
	const json_t *passed = json_object_get(settings, "passed");
	const char *path = text_of(settings, "socket"), *previews = text_of(settings, "previews");
	int r;

	if (json_array_size(listen) + json_array_size(passed) + 3 > SERVE_PROCESS_SOCKETS)
		return err_set(
			err, -E2BIG, "at most %d places to listen on", SERVE_PROCESS_SOCKETS - 3);
	r = take_passed(serve, passed, err);
	for (size_t i = 0; r == 0 && i < json_array_size(listen); i++) {
		const char *place = json_string_value(json_array_get(listen, i));

		r = add_socket(serve, listeners_open_tcp(place ? place : "", err), "tcp");
	}
	if (r == 0 && path)
		r = add_socket(serve, listeners_open_unix(path, err), "unix");
	if (r == 0)
		r = add_socket(serve, plane_socket_listen(office->state_dir, serve->inside, err),
			"inside");
	if (r == 0 && previews)
		r = add_socket(serve, listeners_open_tcp(previews, err), "previews");
	return r;
}

/* NULL where it is none that JSON can hold. */
static json_t *text_value(const struct str *text)
{
	if (!text->p)
		return json_string("");
	return memchr(text->p, '\0', text->len) ? NULL : json_stringn(text->p, text->len);
}

/* Read by root, since keys are root's; handed over in memory. */
static int read_pem(json_t *into, const json_t *settings, const char *key, struct err *err)
{
	const char *path = text_of(settings, key);
	struct str text = {0};
	int r = path ? fdio_read_file(AT_FDCWD, path, PEM_MAX, &text) : 0;

	if (r < 0)
		err_set(err, r, "read '%s': %m", path);
	else if (path && json_object_set_new(into, key, text_value(&text)) < 0)
		r = err_set(err, -EINVAL, "'%s' holds no text: want PEM", path);
	if (text.p)
		explicit_bzero(text.p, text.len);
	str_done(&text);
	return r;
}

static int read_pems(json_t *into, const json_t *settings, struct err *err)
{
	int r = read_pem(into, settings, "tls_cert", err);

	return r < 0 ? r : read_pem(into, settings, "tls_key", err);
}

static int make_folder(const struct serve_process *serve, const char *state_dir, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/server", state_dir);

	if ((mkdir(path, 0700) < 0 && errno != EEXIST) || lchown(path, serve->uid, serve->gid) < 0)
		return err_set(err, -errno, "make '%s': %m", path);
	return 0;
}

static int tell(struct serve_process *serve, const struct office *office, const json_t *settings,
	struct err *err)
{
	const char *database = text_of(settings, "database");
	scoped_mem char *own = mem_printf("sqlite:%s/server/cloche.db", office->state_dir);
	json_t *config = json_object_get(settings, "config");
	scoped(hostkey) struct hostkey *key = NULL;
	int r = hostkey_open(office->state_dir, &key, err);

	if (r < 0)
		return r;

	serve->settings = json_object();
	json_object_set_new(serve->settings, "state_dir", json_string(office->state_dir));
	json_object_set_new(serve->settings, "database", json_string(database ? database : own));
	json_object_set_new(serve->settings, "host", json_string(hostkey_fingerprint(key)));
	json_object_set_new(serve->settings, "sockets", json_array());
	if (config)
		json_object_set(serve->settings, "config", config);
	json_object_set(serve->settings, "log", json_object_get(settings, "log"));
	json_object_set(serve->settings, "log_requests", json_object_get(settings, "log_requests"));
	json_object_set(serve->settings, "reindex", json_object_get(settings, "reindex"));
	return 0;
}

int serve_process_prepare(
	struct serve_process *serve, struct office *office, const json_t *settings, struct err *err)
{
	int r = find_user(serve, text_of(settings, "user"), err);

	office->readers = serve->gid;
	if (r == 0)
		r = tell(serve, office, settings, err);
	if (r == 0)
		r = make_folder(serve, office->state_dir, err);
	if (r == 0 && !json_object_get(settings, "reindex"))
		r = open_sockets(serve, office, settings, err);
	if (r == 0)
		r = read_pems(serve->settings, settings, err);
	return r;
}

static int settings_file(const json_t *settings, struct err *err)
{
	scoped_mem char *text = json_dumps(settings, JSON_COMPACT);
	scoped_fd int low = memfd_create("settings", MFD_CLOEXEC);
	scoped_fd int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, OURS_FROM);
	int r = fd < 0 ? -errno : fdio_write_all(fd, text, strlen(text));

	explicit_bzero(text, strlen(text)); /* a key may be in it */
	if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, r < 0 ? r : -errno, "write the settings: %m");
	return take_fd(&fd);
}

static int drop_rights(const struct serve_process *serve)
{
	if (setgroups(0, NULL) < 0 || setresgid(serve->gid, serve->gid, serve->gid) < 0 ||
		setresuid(serve->uid, serve->uid, serve->uid) < 0)
		return -errno;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		return -errno;
	return 0;
}

static _Noreturn void become(const struct serve_process *serve, const char *program, int settings,
	int office, pid_t launcher)
{
	const struct rlimit files = {.rlim_cur = FILES_MAX, .rlim_max = FILES_MAX};
	sigset_t none;

	(void)setrlimit(RLIMIT_NOFILE, &files); /* fewer than it may want, where the host says so */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	(void)dup2(settings, SETTINGS_AT);
	(void)dup2(office, OFFICE_AT);
	for (size_t i = 0; i < serve->n_sockets; i++)
		(void)dup2(serve->sockets[i], SOCKETS_AT + (int)i);
	(void)close_range(SOCKETS_AT + (unsigned)serve->n_sockets, ~0U, 0);
	(void)chdir("/");
	(void)setenv("HOME", "/nonexistent", 1); /* root's has files that libpq would want */
	if (drop_rights(serve) < 0 || getppid() != launcher)
		_exit(SERVE_PROCESS_GIVES_UP);
	(void)execl(program, "cloche-serve", (char *)NULL);
	_exit(SERVE_PROCESS_GIVES_UP);
}

static int open_office(struct serve_process *serve, int *ret_far, struct err *err)
{
	scoped_fd int near = -1, far = -1;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, -errno, "make a socket: %m");
	near = pair[0];
	far = pair[1];
	scoped_close(&serve->office_fd);
	serve->office_fd = fcntl(near, F_DUPFD_CLOEXEC, OURS_FROM);
	*ret_far = fcntl(far, F_DUPFD_CLOEXEC, OURS_FROM);
	if (serve->office_fd < 0 || *ret_far < 0)
		return err_set(err, -errno, "move a descriptor: %m");
	return 0;
}

int serve_process_start(struct serve_process *serve, struct err *err)
{
	scoped_str struct str program = {0};
	scoped_fd int settings = -1, far = -1;
	pid_t self = getpid();
	int r = program_find("cloche-serve", &program, err);

	if (r == 0)
		r = settings = settings_file(serve->settings, err);
	if (r >= 0)
		r = open_office(serve, &far, err);
	if (r < 0)
		return r;
	json_decref(take(&serve->renewed)); /* nobody takes that any more */
	serve->is_due = false;
	serve->pid = fork();
	if (serve->pid == 0)
		become(serve, program.p, settings, far, self);
	if (serve->pid < 0)
		return err_set(err, -errno, "start '%s': %m", program.p);
	serve->started_s = time(NULL);
	return 0;
}

int serve_process_renew(struct serve_process *serve, const json_t *settings, struct err *err)
{
	static const char message[] = "{\"tell\":\"tls\"}";
	scoped_fd int fd = -1;
	int r;

	if (!json_object_get(serve->settings, "tls_key"))
		return 0;
	serve->is_due = serve->renewed != NULL;
	if (serve->is_due)
		return 1;
	serve->renewed = json_object();
	r = read_pems(serve->renewed, settings, err);
	if (r == 0)
		r = fd = settings_file(serve->renewed, err);
	if (r >= 0 && fdio_send(serve->office_fd, message, sizeof(message) - 1, &fd, 1) < 0)
		r = err_set(err, -EPIPE, "cloche-serve is not there");
	if (r < 0)
		json_decref(take(&serve->renewed));
	return r < 0 ? r : 1;
}

int serve_process_heard(struct serve_process *serve, bool has_taken)
{
	json_t *renewed = take(&serve->renewed);
	int is_due = serve->is_due;

	if (renewed && has_taken)
		json_object_update(serve->settings, renewed);
	json_decref(renewed);
	/* From now on a certificate that has run out is no reason not to start. */
	json_object_set_new(serve->settings, "was_started", json_true());
	serve->is_due = false;
	return is_due;
}

/* Its end shows by its status, too. */
void serve_process_answer(struct serve_process *serve, const struct office *office)
{
	if (office_serve_one(office, serve->office_fd) < 0) {
		close(serve->office_fd);
		serve->office_fd = -1;
	}
}

bool serve_process_was_ready(const struct serve_process *serve)
{
	return json_is_true(json_object_get(serve->settings, "was_started"));
}

void serve_process_ended(struct serve_process *serve)
{
	serve->pid = 0;
}

static bool has_ended(const struct serve_process *serve)
{
	pid_t pid = waitpid(serve->pid, NULL, WNOHANG);

	return pid == serve->pid || (pid < 0 && errno != EINTR);
}

void serve_process_stop(struct serve_process *serve, const struct office *office)
{
	if (serve->pid > 0)
		(void)kill(serve->pid, SIGTERM);
	/* What it has under way it still asks for, and would wait for. */
	while (serve->pid > 0 && !has_ended(serve)) {
		struct pollfd p = {.fd = serve->office_fd, .events = POLLIN};

		if (poll(&p, 1, STOP_MS) > 0)
			serve_process_answer(serve, office);
	}
	for (size_t i = 0; i < serve->n_sockets; i++)
		close(serve->sockets[i]);
	if (serve->inside[0])
		plane_socket_remove(office->state_dir, serve->inside);
	scoped_close(&serve->office_fd);
	json_decref(serve->settings);
	json_decref(serve->renewed);
	*serve = SERVE_PROCESS_NONE;
}
