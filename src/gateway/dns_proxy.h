/* SPDX-License-Identifier: Apache-2.0 */
/* Port 53 over UDP, of every address: whichever server a program asks, it is this one. */
#ifndef GATEWAY_DNS_PROXY_H
#define GATEWAY_DNS_PROXY_H

#include "util/err.h"

struct gateway;
struct dns_proxy;

int dns_proxy_open(struct gateway *gw, struct dns_proxy **ret_proxy, struct err *err);
void dns_proxy_free(struct dns_proxy *proxy);

#endif
