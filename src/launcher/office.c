/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that may take long are answered by a child each: the next one never waits. */
#include "launcher/office.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/client.h"
#include "control/launcher_client.h"
#include "launcher/audit.h"
#include "launcher/mend.h"
#include "launcher/office_removed.h"
#include "launcher/office_verb.h"
#include "launcher/office_watch.h"
#include "util/fdio.h"
#include "util/id.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/scoped.h"

struct request {
	const struct office *office;
	const json_t *body;
	int pass_fd; /* came with it; -1: none */
	int reply_fd;
};

static void answer(int reply_fd, struct slice text, int fd)
{
	/* Who no longer waits for it has gone. */
	(void)fdio_send(reply_fd, text.p, text.len, &fd, fd < 0 ? 0 : 1);
}

static void answer_ok(const struct request *req, int fd)
{
	answer(req->reply_fd, slice_of("{\"ok\":true}"), fd);
}

static void answer_error(int reply_fd, int r, const struct err *err)
{
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);

	jsonw_object(&j);
	jsonw_kbool(&j, "ok", false);
	jsonw_ktext(&j, "error", err->msg);
	jsonw_ktext(&j, "errno", strerrorname_np(-r));
	jsonw_object_end(&j);
	answer(reply_fd, str_slice(&text), -1);
}

static const char *text_of(const struct request *req, const char *key)
{
	return json_string_value(json_object_get(req->body, key));
}

/* A sandbox that a control plane made: its record is read by our group. */
static int find_sandbox(const struct request *req, const char **ret_id, struct err *err)
{
	const char *id = text_of(req, "sandbox");
	scoped_mem char *dir = NULL;
	struct stat st;

	if (!id || !id_is_valid("sb", id))
		return err_set(err, -EINVAL, "no sandbox has this id");
	dir = mem_printf("%s/records/%s", req->office->state_dir, id);
	if (lstat(dir, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_gid != req->office->readers)
		return err_set(err, -ENOENT, "there is no sandbox %s", id);
	*ret_id = id;
	return 0;
}

/* What is said over it from then on is not the launcher's word: no rules are changed, and only what the sandbox's account
 * may reach is allowed. A message of few bytes in an empty socket: it does not wait. */
static int narrow(const struct office *office, struct client *client, struct err *err)
{
	json_t *accounts = json_object_get(office->config, "accounts"), *limits;
	scoped_str struct str body = {0}, text = {0};
	struct jsonw j = jsonw_to(&body);
	const char *account;
	int r;

	jsonw_object(&j);
	jsonw_key(&j, "private");
	jsonw_array(&j);
	json_object_foreach(
		accounts, account, limits) if (json_is_true(json_object_get(limits, "private")))
		jsonw_text(&j, account);
	jsonw_array_end(&j);
	jsonw_object_end(&j);
	client_request(&text, "narrow", str_slice(&body));
	r = client_send(client, WIRE_JSON, str_slice(&text));
	return r < 0 ? err_set(err, r, "speak to the sandbox: %m") : 0;
}

static int on_connect(const struct request *req, struct err *err)
{
	scoped(client) struct client *client = NULL;
	const char *id = NULL;
	int r = find_sandbox(req, &id, err);

	if (r == 0)
		r = client_connect(req->office->state_dir, id, &client, err);
	if (r == 0)
		r = narrow(req->office, client, err);
	if (r == 0)
		answer_ok(req, client_fd(client));
	return r;
}

static int on_create(const struct request *req, struct err *err)
{
	return office_create(req->office, req->body, req->reply_fd, err);
}

static int on_net_rules(const struct request *req, struct err *err)
{
	const char *id = NULL;
	int r = find_sandbox(req, &id, err);

	return r < 0 ? r : office_net_rules(req->office, id, req->body, req->reply_fd, err);
}

static int on_net_proxy(const struct request *req, struct err *err)
{
	const char *id = NULL;
	int r = find_sandbox(req, &id, err);

	return r < 0 ? r : office_net_proxy(req->office, id, req->body, req->reply_fd, err);
}

static int on_verb(const struct request *req, struct err *err)
{
	const char *id = NULL;
	int r = find_sandbox(req, &id, err);

	return r < 0 ? r
	             : office_verb(req->office,
			       &(struct office_verb_request){.id = id,
				       .body = req->body,
				       .stdout_fd = req->pass_fd,
				       .reply_fd = req->reply_fd},
			       err);
}

/* Answered once it is under way: the rest comes by the pipe that was handed over. */
static int on_watch_files(const struct request *req, struct err *err)
{
	bool is_patient = json_is_true(json_object_get(req->body, "wait"));
	scoped_str struct str path = {0};
	const char *id = NULL;
	int r = find_sandbox(req, &id, err);

	if (r == 0)
		r = office_watch_read(req->body, &path, err);
	if (r == 0 && req->pass_fd < 0)
		r = err_set(err, -EINVAL, "want a pipe to tell it by");
	if (r < 0)
		return r;
	answer_ok(req, -1);
	office_watch_become(req->office, id, &path, is_patient, req->pass_fd);
}

/* Its supervisor was killed: its record gets an end, and what ran in it is gone. */
static int on_mend(const struct request *req, struct err *err)
{
	const char *id = NULL;
	int r = find_sandbox(req, &id, err);

	if (r == 0)
		r = mend_sandbox(req->office->state_dir, req->office->run_dir, id, err);
	if (r < 0)
		return r;
	answer_ok(req, -1);
	return 0;
}

static int on_audit(const struct request *req, struct err *err)
{
	scoped_str struct str line = {0}, text = {0};
	int r = audit_append(
		req->office->state_dir, json_object_get(req->body, "line"), &line, err);

	if (r < 0)
		return r;
	str_printf(&text, "{\"ok\":true,\"line\":%s}", line.p);
	answer(req->reply_fd, str_slice(&text), -1);
	return 0;
}

/* No more than the database holds that they have anyway. */
static int on_journal(const struct request *req, struct err *err)
{
	scoped_fd int fd = audit_open(req->office->state_dir, err);

	if (fd < 0)
		return fd;
	answer_ok(req, fd);
	return 0;
}

static int on_removed(const struct request *req, struct err *err)
{
	scoped_str struct str text = {0};
	int r = office_removed(req->office, json_object_get(req->body, "sandboxes"), &text, err);

	if (r < 0)
		return r;
	answer(req->reply_fd, str_slice(&text), -1);
	return 0;
}

static int on_ready(const struct request *req, struct err *err)
{
	req->office->on_ready(req->office->ctx, text_of(req, "why"));
	answer_ok(req, -1);
	return 0;
}

static const struct {
	const char *name;
	int (*handler)(const struct request *req, struct err *err);
	bool is_quick; /* answered by the launcher itself */
} kinds[] = {
	{"connect", on_connect, true},
	{"create", on_create, false},
	{"net-rules", on_net_rules, false},
	{"net-proxy", on_net_proxy, false},
	{"verb", on_verb, false},
	{"watch-files", on_watch_files, false},
	{"mend", on_mend, false},
	{"audit", on_audit, false},
	{"journal", on_journal, true},
	{"removed", on_removed, false},
	{"ready", on_ready, true},
};

static void dispatch(const struct request *req, size_t kind)
{
	struct err err = {0};
	int r = kinds[kind].handler(req, &err);

	if (r < 0)
		answer_error(req->reply_fd, r, &err);
}

static void start(const struct request *req)
{
	const char *name = text_of(req, "request");
	struct err err;
	size_t i = 0;
	pid_t pid;

	while (i < sizeof(kinds) / sizeof(kinds[0]) && !(name && strcmp(kinds[i].name, name) == 0))
		i++;
	if (i == sizeof(kinds) / sizeof(kinds[0])) {
		answer_error(req->reply_fd,
			err_set(&err, -EOPNOTSUPP, "the launcher knows no such request"), &err);
		return;
	}
	if (kinds[i].is_quick) {
		dispatch(req, i);
		return;
	}
	pid = fork();
	if (pid == 0) {
		dispatch(req, i);
		_exit(0);
	}
	if (pid < 0)
		answer_error(req->reply_fd, err_set(&err, -errno, "start a process: %m"), &err);
}

int office_serve_one(const struct office *office, int sock)
{
	scoped_mem char *text = mem_zero(1, LAUNCHER_MESSAGE_MAX);
	struct request req = {.office = office};
	int fds[2] = {-1, -1};
	size_t n_fds = 0;
	ssize_t n = fdio_recv(sock, text, LAUNCHER_MESSAGE_MAX, fds, 2, &n_fds);
	json_t *body;

	if (n <= 0)
		return n == -EMSGSIZE ? 0 : -EPIPE;
	body = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	req.body = body;
	req.reply_fd = n_fds > 0 ? fds[0] : -1;
	req.pass_fd = n_fds > 1 ? fds[1] : -1;
	if (body && req.reply_fd >= 0)
		start(&req);
	json_decref(body);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	return 0;
}
