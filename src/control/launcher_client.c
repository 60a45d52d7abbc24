/* SPDX-License-Identifier: Apache-2.0 */
#include "control/launcher_client.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "control/client.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/scoped.h"

static int gone(struct err *err, int r)
{
	return err_set(err, r, "the launcher does not answer: see the log of `cloche serve`");
}

static int send_request(int sock, const struct launcher_ask *ask, int reply_fd, struct err *err)
{
	scoped_str struct str text = {0};
	const int fds[] = {reply_fd, ask->pass_fd};

	client_request(&text, ask->request, ask->body);
	if (text.len > LAUNCHER_MESSAGE_MAX)
		return err_set(
			err, -E2BIG, "the request is longer than %u bytes", LAUNCHER_MESSAGE_MAX);
	if (fdio_send(sock, text.p, text.len, fds, ask->pass_fd < 0 ? 1 : 2) < 0)
		return gone(err, -ECONNRESET);
	return 0;
}

static int wait_readable(int sock, int timeout_ms, struct err *err)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int r;

	do
		r = poll(&p, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	return r > 0 ? 0 : gone(err, r < 0 ? -errno : -ETIMEDOUT);
}

static int take_answer(int sock, json_t **ret_answer, int *ret_fd, struct err *err)
{
	scoped_mem char *text = mem_zero(1, LAUNCHER_MESSAGE_MAX);
	scoped_fd int fd = -1;
	json_t *answer;
	size_t n_fds;
	ssize_t n = fdio_recv(sock, text, LAUNCHER_MESSAGE_MAX, &fd, 1, &n_fds);
	int r;

	if (n_fds == 0)
		fd = -1;
	if (n <= 0)
		return gone(err, n < 0 ? (int)n : -ECONNRESET);
	answer = json_loadb(text, (size_t)n, JSON_ALLOW_NUL, NULL);
	r = answer ? client_check(answer, err)
	           : err_set(err, -EBADMSG, "the launcher's answer is no JSON");
	if (r == 0 && ret_answer)
		*ret_answer = json_incref(answer);
	if (r == 0 && ret_fd)
		*ret_fd = take_fd(&fd);
	json_decref(answer);
	return r;
}

int launcher_client_ask(
	int sock, const struct launcher_ask *ask, json_t **ret_answer, int *ret_fd, struct err *err)
{
	scoped_fd int near = -1, far = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, -errno, "make a socket: %m");
	near = pair[0];
	far = pair[1];
	r = send_request(sock, ask, far, err);
	scoped_close(&far);
	far = -1; /* so that an end without an answer shows */
	if (r == 0)
		r = wait_readable(near, ask->timeout_ms, err);
	return r < 0 ? r : take_answer(near, ret_answer, ret_fd, err);
}
