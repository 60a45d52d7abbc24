/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/visit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/network.h"
#include "util/fdio.h"
#include "util/scoped.h"

enum end { OURS, GATEWAYS };

int visit_open(struct supervisor *sup, struct err *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sup->visits) < 0)
		return err_set(err, -errno, "make a socket for visits: %m");
	return 0;
}

void visit_close(struct supervisor *sup)
{
	scoped_close(&sup->visits[OURS]);
	scoped_close(&sup->visits[GATEWAYS]);
	sup->visits[OURS] = sup->visits[GATEWAYS] = -1;
}

int visit_gateway_fd(const struct supervisor *sup)
{
	return sup->visits[GATEWAYS];
}

/* What stands in the record as who came in: an address and its port, and nothing else. */
static int read_asked(const json_t *body, struct gateway_visit *ret, struct err *err)
{
	const char *from = json_string_value(json_object_get(body, "from"));
	json_int_t port = json_integer_value(json_object_get(body, "port"));

	if (port < 1 || port > 65535)
		return err_set(err, -EINVAL, "a port is a number from 1 to 65535");
	if (!from || !*from || strlen(from) >= sizeof(ret->from) ||
		from[strspn(from, "0123456789abcdef.:[]")])
		return err_set(err, -EINVAL, "\"from\" is an address and its port");
	*ret = (struct gateway_visit){.port = (uint16_t)port};
	memcpy(ret->from, from, strlen(from));
	return 0;
}

static int check_network(struct supervisor *sup, struct err *err)
{
	network_open(sup);
	if (sup->visits[OURS] < 0)
		return err_set(err, -EOPNOTSUPP,
			"sandbox %s has no network, so nobody can be let in to its ports", sup->id);
	return 0;
}

static int check_paused(const struct supervisor *sup, struct err *err)
{
	return sup->is_paused ? err_set(err, -EBUSY, "sandbox %s is paused: `cloche wake %s` first",
					sup->id, sup->id)
	                      : 0;
}

int visit_request(struct supervisor *sup, struct conn *conn, const json_t *body, struct err *err)
{
	scoped_fd int theirs = -1, gateways = -1;
	struct gateway_visit asked;
	int pair[2], r = check_network(sup, err);
	ssize_t n;

	if (r == 0 && json_is_true(json_object_get(body, "probe"))) {
		conn_answer_ok(conn, slice_of(""));
		return 0;
	}
	if (r == 0)
		r = read_asked(body, &asked, err);
	if (r == 0)
		r = check_paused(sup, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, -errno, "make a pair of sockets: %m");
	theirs = pair[0];
	gateways = pair[1];
	n = fdio_send(sup->visits[OURS], &asked, sizeof(asked), &gateways, 1);
	if (n < 0)
		return err_set(err, (int)n, "ask the sandbox's gateway: %m");
	return conn_answer_fd(conn, take_fd(&theirs), err);
}
