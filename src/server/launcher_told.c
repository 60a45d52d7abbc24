/* SPDX-License-Identifier: Apache-2.0 */
#include "server/launcher_told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/launcher_ask.h"
#include "server/workers.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"

#define MESSAGE_MAX 4096
#define FILES_MAX   (1u << 20) /* certificate and key, as JSON */

struct launcher_told {
	struct server *server;
	struct listener_tls *tls;
	struct event *io;
};

struct saying { /* to the launcher, by a worker */
	struct work work;
	struct server *server;
	bool is_bad;
	struct err why;
};

static void say(struct work *work)
{
	struct saying *saying = (struct saying *)work;
	struct err err = {0};

	if (launcher_ask_ready(saying->server, saying->is_bad ? saying->why.msg : NULL, &err) < 0)
		log_warn("%s", err.msg);
}

static void said(struct work *work)
{
	free(work);
}

static int read_files(int fd, json_t **ret, struct err *err)
{
	struct str text = {0};
	int r = fdio_read_all(fd, FILES_MAX, &text);

	if (r == 0)
		*ret = json_loadb(text.p ? text.p : "", text.len, 0, NULL);
	if (text.p)
		explicit_bzero(text.p, text.len);
	str_done(&text);
	return r == 0 && *ret ? 0 : err_set(err, -EINVAL, "certificate and key cannot be read");
}

static int renew(struct launcher_told *told, int fd, struct err *err)
{
	scoped(listener_tls) struct listener_tls *next = NULL;
	json_t *files = NULL;
	const char *cert, *key;
	int r = read_files(fd, &files, err);

	cert = json_string_value(json_object_get(files, "tls_cert"));
	key = json_string_value(json_object_get(files, "tls_key"));
	if (r == 0)
		r = listener_tls_new(cert ? cert : "", key ? key : "", false, &next, err);
	if (r == 0)
		listener_tls_renew(told->tls, next);
	json_decref(files);
	return r;
}

static void on_message(evutil_socket_t sock, short what, void *ctx)
{
	struct launcher_told *told = ctx;
	char text[MESSAGE_MAX];
	scoped_fd int fd = -1;
	struct saying *saying;
	size_t n_fds = 0;
	ssize_t n = fdio_recv(sock, text, sizeof(text), &fd, 1, &n_fds);

	if (n_fds == 0)
		fd = -1;
	if (n <= 0) { /* it is gone, and so are we, by its signal */
		event_del(told->io);
		return;
	}
	if (n_fds == 0 || !told->tls)
		return;
	saying = new0(struct saying);
	saying->server = told->server;
	saying->is_bad = renew(told, fd, &saying->why) < 0;
	saying->work = (struct work){.run = say, .done = said};
	workers_add(told->server->workers, &saying->work);
}

int launcher_told_new(struct server *server, struct listener_tls *tls,
	struct launcher_told **ret_told, struct err *err)
{
	struct launcher_told *told = new0(struct launcher_told);

	told->server = server;
	told->tls = tls;
	told->io = event_new(server->base, server->office, EV_READ | EV_PERSIST, on_message, told);
	event_add(told->io, NULL);
	*ret_told = told;
	return launcher_ask_ready(server, NULL, err);
}

void launcher_told_free(struct launcher_told *told)
{
	if (!told)
		return;
	event_free(told->io);
	free(told);
}
