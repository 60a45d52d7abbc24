/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/dns_proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/datagram.h"
#include "gateway/dns_work.h"
#include "gateway/gateway_internal.h"
#include "gateway/owners.h"
#include "proto/gateway_wire.h"
#include "util/mem.h"

#define QUESTION_MAX 4096 /* longer ones are cut, and then no question */
#define TURN         64   /* of a socket */
#define DNS_PORT     53
#define OPEN_MAX     1024 /* questions at once; further ones are dropped, and asked again */

struct asker { /* who waits for an answer */
	struct dns_proxy *proxy;
	struct asker *next, **at;
	int fd;
	struct datagram datagram;
	struct dns_work *work;
};

struct dns_proxy {
	struct gateway *gw;
	struct poller_io io4, io6;
	struct asker *first;
	size_t n_open;
};

static void asker_free(struct asker *asker)
{
	*asker->at = asker->next;
	if (asker->next)
		asker->next->at = asker->at;
	asker->proxy->n_open--;
	dns_work_cancel(asker->work);
	free(asker);
}

static void on_reply(void *ctx, struct slice message)
{
	struct asker *asker = ctx;

	asker->work = NULL; /* is over */
	if (message.len)
		datagram_reply(asker->fd, &asker->datagram, message.p, message.len);
	asker_free(asker);
}

static struct asker *asker_new(struct dns_proxy *proxy, int fd, const struct datagram *datagram)
{
	struct asker *asker = new0(struct asker);

	*asker = (struct asker){.proxy = proxy, .fd = fd, .datagram = *datagram};
	asker->next = proxy->first;
	asker->at = &proxy->first;
	if (asker->next)
		asker->next->at = &asker->next;
	proxy->first = asker;
	proxy->n_open++;
	return asker;
}

static void serve(struct dns_proxy *proxy, int fd, struct datagram *datagram)
{
	struct slice message = {.p = datagram->p, .len = datagram->len};
	struct dns_origin origin = {.protocol = "udp", .reply = on_reply};
	struct dns_work *work;
	struct asker *asker;

	datagram->key.dport = DNS_PORT;
	memcpy(origin.server, datagram->key.dst, sizeof(origin.server));
	owners_find(proxy->gw->owners, &datagram->key, &origin.owner);
	asker = asker_new(proxy, fd, datagram);
	origin.ctx = asker;
	work = dns_work_start(proxy->gw, message, &origin);
	if (work)
		asker->work = work; /* else it was replied to, and the asker is gone */
}

static bool read_one(struct dns_proxy *proxy, int fd)
{
	char question[QUESTION_MAX];
	struct datagram datagram = {.p = question, .max = sizeof(question)};

	if (datagram_read(fd, &datagram) <= 0)
		return false;
	if (proxy->n_open < OPEN_MAX)
		serve(proxy, fd, &datagram);
	return true;
}

static void on_dns4(void *ctx)
{
	for (int i = 0; i < TURN && read_one(ctx, GATEWAY_FD_DNS4); i++)
		;
}

static void on_dns6(void *ctx)
{
	for (int i = 0; i < TURN && read_one(ctx, GATEWAY_FD_DNS6); i++)
		;
}

int dns_proxy_open(struct gateway *gw, struct dns_proxy **ret_proxy, struct err *err)
{
	struct dns_proxy *proxy = new0(struct dns_proxy);
	int r;

	proxy->gw = gw;
	proxy->io4.fd = proxy->io6.fd = -1;
	r = poller_add_level(gw->poller, &proxy->io4, GATEWAY_FD_DNS4, on_dns4, proxy);
	if (r == 0)
		r = poller_add_level(gw->poller, &proxy->io6, GATEWAY_FD_DNS6, on_dns6, proxy);
	if (r == -EBADF)
		r = 0; /* a host without IPv6 */
	if (r < 0) {
		dns_proxy_free(proxy);
		return err_set(err, r, "watch the sockets for names: %m");
	}
	*ret_proxy = proxy;
	return 0;
}

void dns_proxy_free(struct dns_proxy *proxy)
{
	if (!proxy)
		return;
	while (proxy->first)
		asker_free(proxy->first);
	poller_remove(proxy->gw->poller, &proxy->io4);
	poller_remove(proxy->gw->poller, &proxy->io6);
	free(proxy);
}
