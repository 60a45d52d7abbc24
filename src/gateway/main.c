/* SPDX-License-Identifier: Apache-2.0 */
/* cloche-gateway: not for people; cloche-supervisor starts it with the descriptors of proto/gateway_wire.h. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/gateway.h"
#include "proto/gateway_wire.h"
#include "util/fdio.h"
#include "util/log.h"

#define FAILED      125
#define FDS_AT_ONCE 1024 /* descriptors of some hundred flows */

static void keep_only_ours(void)
{
	for (int fd = GATEWAY_FD_CONTROL; fd < GATEWAY_FD_END; fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* a closed one is fine */
	(void)close_range(GATEWAY_FD_END, ~0u, 0);    /* cannot fail with these */
}

int main(int argc, char **argv)
{
	struct stat control;
	struct err err = {{0}};

	if (fdio_fill_standard() < 0)
		return FAILED;
	if (argc > 1 || fstat(GATEWAY_FD_CONTROL, &control) < 0 || !S_ISSOCK(control.st_mode)) {
		fputs("cloche-gateway is started by cloche-supervisor: see `cloche --help`\n",
			stderr);
		return 2;
	}
	prctl(PR_SET_NAME, "cloche-gateway");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN); /* a terminal's keys are for the command inside */
	signal(SIGQUIT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	keep_only_ours();
	fdio_reserve(FDS_AT_ONCE);
	if (gateway_main(&err) == 0)
		return 0;
	log_warn("%s", err.msg);
	return FAILED;
}
