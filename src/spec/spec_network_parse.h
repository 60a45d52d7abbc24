/* SPDX-License-Identifier: Apache-2.0 */
/* The words people write in network options and spec files. All fill a spec_network and return 0, or -EINVAL with
 * one sentence; none shows a credential. Rules are only kept here: spec_network_check() reads them. */
#ifndef SPEC_SPEC_NETWORK_PARSE_H
#define SPEC_SPEC_NETWORK_PARSE_H

#include "spec/spec_network.h"

int spec_network_parse_net(const char *text, enum spec_net *ret_net, struct err *err);
/* NAME[:PORT]=ADDR[:PORT]; NAME may be "*.NAME". A map of the same name and port is replaced. */
int spec_network_parse_map(const char *text, struct spec_network *net, struct err *err);
/* ADDR[:PORT]: a DNS server, port 53 unless named. Added. */
int spec_network_parse_resolver(const char *text, struct spec_network *net, struct err *err);
/* "intercept", "passthrough", or NAME=passthrough, where NAME may be "*.NAME". */
int spec_network_parse_tls(const char *text, struct spec_network *net, struct err *err);
/* http://[USER:PASSWORD@]HOST:PORT, percent-encoded where needed. */
int spec_network_parse_proxy(const char *text, struct spec_network *net, struct err *err);
/* [ADDR:]PORT:PORT: the host's, then the sandbox's. 127.0.0.1 without ADDR. Added. */
int spec_network_parse_publish(const char *text, struct spec_network *net, struct err *err);
/* NAME@HOST[,HOST...][,plain=yes][,pass=HOST...]. A secret of the same name is replaced. */
int spec_network_parse_secret(const char *text, struct spec_network *net, struct err *err);

/* The same as text. */
void spec_network_format_map(struct str *out, const struct spec_host_map *map);
void spec_network_format_publish(struct str *out, const struct spec_publish *publish);

/* A name a variable may have. */
bool spec_network_is_variable(const char *name);

/* NULL where there is none of that name. */
struct spec_secret *spec_network_secret(struct spec_network *net, const char *name);
const struct spec_set *spec_network_set(const struct spec_network *net, const char *name);
/* A set of that name, empty, in place of one that was there. */
struct spec_set *spec_network_add_set(struct spec_network *net, const char *name);

#endif
