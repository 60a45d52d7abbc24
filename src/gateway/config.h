/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor hands to a new gateway: the CONFIG and SECRETS files (proto/gateway_wire.h). */
#ifndef GATEWAY_CONFIG_H
#define GATEWAY_CONFIG_H

#include <stdint.h>
#include <sys/types.h>

#include "spec/spec_network.h"
#include "util/err.h"

struct config {
	char *sandbox;
	int64_t start_ns;
	uid_t uid;
	struct spec_network network;
	struct spec_words resolvers; /* "ADDR[:PORT]": the network's, or the host's own */
	struct str secrets;          /* the SECRETS file; empty where there is none */
	struct str
		proxy; /* the PROXY file or frame, newer than both others; empty where there is none */
};

/* The servers that a resolv.conf(5) names. Pure. */
void config_resolvers(struct slice text, struct spec_words *ret_words);
/* Reads them, and what resolvers the host uses where none are named; secrets_fd and proxy_fd may be closed. Zero-initialised
 * before. */
int config_read(
	struct config *config, int config_fd, int secrets_fd, int proxy_fd, struct err *err);
/* Another upstream proxy, as the PROXY file has it: in the network at once, and in those to come. */
int config_set_proxy(struct config *config, struct slice json, struct err *err);
/* Reads another network object, with what is hidden of it from the same secrets. */
int config_network(const struct config *config, struct slice json, struct spec_network *ret_network,
	struct err *err);
void config_done(struct config *config); /* overwrites what is secret */

#endif
