/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/flow_head.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/mem.h"

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void flow_head_init(struct flow_head *head, const char *protocol, const uint8_t address[16],
	uint16_t port, const char *host, const struct netcatch_owner *owner)
{
	*head = (struct flow_head){.host = mem_dup(host), .port = port, .protocol = protocol};
	memcpy(head->address, address, sizeof(head->address));
	if (owner)
		head->owner = *owner;
	flow_address_text(address, head->address_text);
}

void flow_head_done(struct flow_head *head)
{
	free(head->host);
	head->host = NULL;
}

struct event flow_head_event(const struct flow_head *head, enum event_kind kind)
{
	struct event ev = {.kind = kind, .pid = head->owner.pid, .task = head->owner.task};

	if (head->flow)
		event_set(&ev, flow, head->flow);
	event_set_text(&ev, host, head->host);
	event_set_text(&ev, address, head->address_text);
	event_set(&ev, port, head->port);
	event_set_text(&ev, protocol, head->protocol);
	return ev;
}

void flow_address_text(const uint8_t address[16], char ret[FLOW_ADDRESS_SIZE])
{
	if (memcmp(address, mapped, sizeof(mapped)) == 0)
		inet_ntop(AF_INET, address + sizeof(mapped), ret, FLOW_ADDRESS_SIZE);
	else
		inet_ntop(AF_INET6, address, ret, FLOW_ADDRESS_SIZE);
}

socklen_t flow_sockaddr(const uint8_t address[16], uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (memcmp(address, mapped, sizeof(mapped)) == 0) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, address + sizeof(mapped), sizeof(v4->sin_addr));
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	memcpy(&v6->sin6_addr, address, sizeof(v6->sin6_addr));
	return sizeof(*v6);
}

void flow_from_sockaddr(
	const struct sockaddr_storage *from, uint8_t ret_address[16], uint16_t *ret_port)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;

	if (from->ss_family == AF_INET) {
		memcpy(ret_address, mapped, sizeof(mapped));
		memcpy(ret_address + sizeof(mapped), &v4->sin_addr, sizeof(v4->sin_addr));
		*ret_port = ntohs(v4->sin_port);
		return;
	}
	memcpy(ret_address, &v6->sin6_addr, sizeof(v6->sin6_addr));
	*ret_port = ntohs(v6->sin6_port);
}

void flow_close(int fd, bool reset)
{
	struct linger linger = {.l_onoff = reset, .l_linger = 0};

	(void)setsockopt(
		fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)); /* cannot fail with these */
	close(fd);
}
