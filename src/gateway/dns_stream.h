/* SPDX-License-Identifier: Apache-2.0 */
/* Port 53 over TCP (RFC 7766), of every address. Questions of one connection are answered one after the other. */
#ifndef GATEWAY_DNS_STREAM_H
#define GATEWAY_DNS_STREAM_H

#include "gateway/flow_head.h"

#define DNS_STREAM_PORT 53

struct gateway;
struct dns_streams;

struct dns_streams *dns_streams_new(struct gateway *gw);
void dns_streams_free(struct dns_streams *streams);

/* Takes over the accepted socket and what is in head. */
void dns_stream_open(struct gateway *gw, struct flow_head *head, int fd);

#endif
