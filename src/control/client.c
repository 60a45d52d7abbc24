/* SPDX-License-Identifier: Apache-2.0 */
#include "control/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/rest.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define READ_STEP 65536

struct client {
	int sock;
	int *want_fd; /* a descriptor that comes goes here; NULL: none is waited for */
	struct str in;
	size_t taken; /* bytes of in that were given out by the last call */
};

int client_socket_path(const char *state_dir, const char *id, struct str *out)
{
	str_reset(out);
	str_printf(out, "%s/sandboxes/%s/control.sock", state_dir, id);
	return 0;
}

/* A socket address holds 107 bytes: a longer path is reached through a descriptor of its folder. */
static int connect_at(int sock, const char *state_dir, const char *id)
{
	scoped_str struct str folder = {0};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	scoped_fd int dir = -1;

	str_printf(&folder, "%s/sandboxes/%s", state_dir, id);
	dir = open(folder.p, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/control.sock", dir);
	if (connect(sock, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return 0;
}

static bool is_suspended(const char *state_dir, const char *id)
{
	scoped_mem char *dir = mem_printf("%s/sandboxes/%s", state_dir, id);
	scoped(rest) struct rest *rest = NULL;

	return rest_read(dir, &rest, NULL) == 0 && !rest->is_over;
}

int client_connect(
	const char *state_dir, const char *id, struct client **ret_client, struct err *err)
{
	scoped_fd int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r;

	if (sock < 0)
		return err_set(err, -errno, "make a socket: %m");
	r = connect_at(sock, state_dir, id);
	if ((r == -ENOENT || r == -ECONNREFUSED) && is_suspended(state_dir, id))
		return err_set(err, r,
			"sandbox %s is suspended: `cloche resume %s` lets it run again", id, id);
	if (r == -ENOENT || r == -ECONNREFUSED)
		return err_set(
			err, r, "sandbox %s is not running: `cloche ps` lists those that are", id);
	if (r == -EACCES)
		return err_set(
			err, r, "sandbox %s: its socket is root's, so run this with sudo", id);
	if (r < 0)
		return err_set(err, r, "reach sandbox %s: %m", id);
	*ret_client = client_adopt(take_fd(&sock));
	return 0;
}

struct client *client_adopt(int sock)
{
	struct client *client = new0(struct client);

	client->sock = sock;
	return client;
}

void client_free(struct client *client)
{
	if (!client)
		return;
	close(client->sock);
	str_done(&client->in);
	free(client);
}

int client_fd(const struct client *client)
{
	return client->sock;
}

static int send_all(int sock, struct slice bytes)
{
	while (bytes.len > 0) {
		ssize_t n = fdio_send(sock, bytes.p, bytes.len, NULL, 0);

		if (n < 0)
			return (int)n;
		bytes.p += n;
		bytes.len -= (size_t)n;
	}
	return 0;
}

int client_send(struct client *client, enum wire_type type, struct slice payload)
{
	scoped_secret struct str out = {0};

	wire_add(&out, type, payload);
	return send_all(client->sock, str_slice(&out));
}

static void drop_taken(struct client *client)
{
	if (client->taken == 0)
		return;
	memmove(client->in.p, client->in.p + client->taken, client->in.len - client->taken);
	client->in.len -= client->taken;
	client->taken = 0;
}

static int take_one(struct client *client, struct wire_frame *ret_frame)
{
	long n = wire_take(str_slice(&client->in), ret_frame);

	if (n > 0)
		client->taken = (size_t)n;
	return n < 0 ? (int)n : n > 0;
}

/* As recv(). */
static ssize_t receive_fd(struct client *client)
{
	size_t n_fds = 0;
	int fd = -1;
	ssize_t n =
		fdio_recv(client->sock, client->in.p + client->in.len, READ_STEP, &fd, 1, &n_fds);

	if (n_fds == 1)
		scoped_close(client->want_fd);
	if (n_fds == 1)
		*client->want_fd = fd;
	if (n < 0)
		errno = (int)-n;
	return n < 0 ? -1 : n;
}

static int receive(struct client *client, struct wire_frame *ret_frame, int flags)
{
	drop_taken(client);
	for (;;) {
		int r = take_one(client, ret_frame);
		ssize_t n;

		if (r != 0)
			return r;
		str_reserve(&client->in, READ_STEP);
		n = client->want_fd
		            ? receive_fd(client)
		            : recv(client->sock, client->in.p + client->in.len, READ_STEP, flags);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == ECONNRESET ? 0 : -errno;
		if (n == 0)
			return 0;
		client->in.len += (size_t)n;
	}
}

int client_receive(struct client *client, struct wire_frame *ret_frame)
{
	return receive(client, ret_frame, 0);
}

int client_poll(struct client *client, struct wire_frame *ret_frame)
{
	return receive(client, ret_frame, MSG_DONTWAIT);
}

void client_request(struct str *out, const char *request, struct slice body)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_ktext(&j, "request", request);
	if (body.len > 2) {
		str_putc(out, ',');
		str_add(out, body.p + 1,
			body.len - 2); /* the members of an object, without its braces */
	}
	jsonw_object_end(&j);
}

int client_check(const json_t *answer, struct err *err)
{
	const char *sentence = json_string_value(json_object_get(answer, "error"));
	const char *name = json_string_value(json_object_get(answer, "errno"));
	int number = 0;

	if (json_is_true(json_object_get(answer, "ok")))
		return 0;
	for (int e = 1; name && e < 134 && number == 0; e++)
		if (strerrorname_np(e) && strcmp(strerrorname_np(e), name) == 0)
			number = e;
	return err_set(err, number ? -number : -EIO, "%s",
		sentence ? sentence : "the supervisor gave no reason");
}

static int wait_answer(struct client *client, json_t **ret_answer, struct err *err)
{
	struct wire_frame frame;
	json_error_t why;
	int r;

	do {
		r = client_receive(client, &frame);
	} while (r == 1 && frame.type != WIRE_JSON);
	if (r <= 0)
		return err_set(err, r ? r : -EPIPE,
			"the sandbox's supervisor has gone: `cloche gc` mends what it left");
	*ret_answer = json_loadb(frame.payload.p, frame.payload.len, JSON_ALLOW_NUL, &why);
	if (!*ret_answer)
		return err_set(err, -EBADMSG, "the supervisor's answer is not JSON: %s", why.text);
	return 0;
}

int client_ask(struct client *client, const char *request, struct slice body, json_t **ret_answer,
	struct err *err)
{
	scoped_str struct str text = {0};
	json_t *answer = NULL;
	int r;

	client_request(&text, request, body);
	r = client_send(client, WIRE_JSON, str_slice(&text));
	if (r < 0)
		return err_set(err, r, "ask the supervisor: %m");
	r = wait_answer(client, &answer, err);
	if (r == 0)
		r = client_check(answer, err);
	if (r == 0 && ret_answer)
		*ret_answer = json_incref(answer);
	json_decref(answer);
	return r;
}

int client_ask_fd(
	struct client *client, const char *request, struct slice body, int *ret_fd, struct err *err)
{
	scoped_fd int fd = -1;
	int r;

	client->want_fd = &fd;
	r = client_ask(client, request, body, NULL, err);
	client->want_fd = NULL;
	if (r == 0 && fd < 0)
		r = err_set(err, -EBADMSG, "the supervisor handed nothing over");
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}
