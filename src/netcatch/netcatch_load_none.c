/* SPDX-License-Identifier: Apache-2.0 */
/* netcatch_load.h and netcatch_fields.h for a build without BPF: rules catch in place of programs. */
#include <errno.h>
#include <string.h>

#include "netcatch/netcatch_load.h"

void netcatch_fields_get(const char *cache, struct netcatch_fields *ret_fields)
{
	memset(ret_fields, 0, sizeof(*ret_fields));
}

void netcatch_object_init(struct netcatch_object *object)
{
	memset(object, 0xff, sizeof(*object)); /* -1, all of them */
}

void netcatch_object_done(struct netcatch_object *object)
{
}

int netcatch_load_maps(struct netcatch_object *object, struct err *err)
{
	return err_set(err, -ENOSYS, "this build has no BPF in it");
}

int netcatch_load(struct netcatch_object *object, const struct netcatch_fields *fields,
	unsigned which, struct err *err)
{
	return err_set(err, -ENOSYS, "this build has no BPF in it");
}

int netcatch_attach(struct netcatch_object *object, unsigned which, int netns_fd, int cgroup_fd,
	struct err *err)
{
	return err_set(err, -ENOSYS, "this build has no BPF in it");
}
