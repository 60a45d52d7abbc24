/* SPDX-License-Identifier: Apache-2.0 */
/* The way to one control plane: where it is, the key, and the connections, which are used again. */
#ifndef REMOTE_LINK_H
#define REMOTE_LINK_H

#include <curl/curl.h>
#include <poll.h>

#include "cli/elsewhere.h"
#include "remote/address.h"

struct link {
	struct elsewhere elsewhere; /* first: what cli->elsewhere points at (remote_records.h) */
	struct address address;
	char *key; /* NULL: none */
	char *ca;  /* NULL: the system's */
	CURLM *multi;
};

/* By what cli and the environment say; where neither names a server, the socket of this host's. Connects to nothing yet. */
int link_open(const struct cli *cli, struct link **ret_link, struct err *err);
void link_free(struct link *link);
SCOPED_TYPE(link)

/* Lets all transfers go on until something happened to one of them, one of fds is ready (revents), or the time is over. */
void link_work(struct link *link, struct pollfd *fds, size_t n_fds, int timeout_ms);

static inline struct link *link_of(const struct cli *cli)
{
	return (struct link *)cli->elsewhere;
}

#endif
