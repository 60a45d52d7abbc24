/* SPDX-License-Identifier: Apache-2.0 */
#include "server/listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/plane_socket.h"
#include "util/mem.h"

#define AT_ONCE 64 /* accepted in one turn of the loop */

struct listener {
	listener_accept accept;
	void *ctx;
	int fd;
	enum listener_kind kind;
	const struct listener_tls *tls;
	struct event *io;
};

int listener_find_kind(const char *name, enum listener_kind *ret)
{
	static const char *const names[] = {
		[LISTENER_TCP] = "tcp", [LISTENER_LOCAL] = "unix", [LISTENER_INSIDE] = "inside"};

	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0) {
			*ret = (enum listener_kind)i;
			return 0;
		}
	return -EINVAL;
}

/* IPv4 as ::ffff:a.b.c.d. Left as it is where that fails: then it is nobody's. */
static void note_place(int fd, struct http_peer *peer)
{
	struct sockaddr_storage to = {0};
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&to;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&to;
	socklen_t len = sizeof(to);

	if (getsockname(fd, (struct sockaddr *)&to, &len) < 0)
		return;
	if (to.ss_family == AF_INET6) {
		memcpy(peer->to, &v6->sin6_addr, sizeof(peer->to));
		return;
	}
	peer->to[10] = peer->to[11] = 0xff;
	memcpy(peer->to + 12, &v4->sin_addr, sizeof(v4->sin_addr));
}

/* Where a connection comes from. */
struct whence {
	struct sockaddr_storage address;
	socklen_t len;
};

static int name_tcp(int fd, const struct whence *from, struct http_peer *peer)
{
	char host[48] = "?", port[8] = "?";
	const int on = 1;

	(void)getnameinfo((const struct sockaddr *)&from->address, from->len, host, sizeof(host),
		port, sizeof(port),
		NI_NUMERICHOST | NI_NUMERICSERV); /* an address always has numbers */
	snprintf(peer->address, sizeof(peer->address),
		from->address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	note_place(fd, peer);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* only slower */
	return 0;
}

static int name_local(int fd, const struct whence *from, struct http_peer *peer)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	(void)from;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	peer->is_local = true;
	peer->uid = cred.uid;
	snprintf(peer->address, sizeof(peer->address), "unix");
	return 0;
}

/* By a supervisor, which is root, in the name of its sandbox: no right comes of that, and is_local stays false. */
static int name_inside(int fd, const struct whence *from, struct http_peer *peer)
{
	const struct sockaddr_un *own = (const struct sockaddr_un *)&from->address;
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	if (cred.uid != 0 || plane_socket_caller(own, from->len, peer->sandbox) < 0)
		return -EPERM;
	snprintf(peer->address, sizeof(peer->address), "sandbox:%s", peer->sandbox);
	return 0;
}

static int (*const namers[])(int fd, const struct whence *from, struct http_peer *peer) = {
	[LISTENER_TCP] = name_tcp,
	[LISTENER_LOCAL] = name_local,
	[LISTENER_INSIDE] = name_inside,
};

static bool take_one(struct listener *l)
{
	struct whence from = {.len = sizeof(from.address)};
	struct http_peer peer = {0};
	int fd = accept4(
		l->fd, (struct sockaddr *)&from.address, &from.len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return errno == EINTR || errno == ECONNABORTED;
	if (namers[l->kind](fd, &from, &peer) < 0)
		close(fd);
	else
		l->accept(l->ctx, fd, l->tls ? l->tls->context : NULL, &peer);
	return true;
}

static void on_connection(evutil_socket_t fd, short what, void *ctx)
{
	for (int i = 0; i < AT_ONCE && take_one(ctx); i++)
		;
}

struct listener *listener_new(struct event_base *base, listener_accept accept, void *ctx, int fd,
	enum listener_kind kind, const struct listener_tls *tls)
{
	struct listener *l = new0(struct listener);

	*l = (struct listener){.accept = accept, .ctx = ctx, .fd = fd, .kind = kind, .tls = tls};
	l->io = event_new(base, fd, EV_READ | EV_PERSIST, on_connection, l);
	event_add(l->io, NULL);
	return l;
}

void listener_free(struct listener *l)
{
	if (!l)
		return;
	event_free(l->io);
	close(l->fd);
	free(l);
}
