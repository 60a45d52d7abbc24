/* SPDX-License-Identifier: Apache-2.0 */
/* netcatch.h for a build without BPF: the sandbox's network stays what it is, loopback alone. */
#include <errno.h>

#include "netcatch/netcatch.h"
#include "util/mem.h"

struct netcatch {
	char unused;
};

struct netcatch *netcatch_start(const struct netcatch_config *config)
{
	return new0(struct netcatch);
}

static int missing(struct err *err)
{
	return err_set(err, -ENOSYS, "this build has no BPF in it");
}

int netcatch_wait(struct netcatch *netcatch, struct err *err)
{
	return missing(err);
}

void netcatch_free(struct netcatch *netcatch)
{
	free(netcatch);
}

const char *netcatch_notice(const struct netcatch *netcatch)
{
	return NULL;
}

void netcatch_reset(struct netcatch *netcatch)
{
}

int netcatch_probe(struct err *err)
{
	return missing(err);
}

int netcatch_probe_hooks(int cgroup_fd, struct err *err)
{
	return missing(err);
}

int netcatch_fd(const struct netcatch *netcatch, enum netcatch_part part)
{
	return -1;
}
