/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/elsewhere.h"

#include <errno.h>
#include <unistd.h>

#include "util/program.h"
#include "util/str.h"

int elsewhere_become(const struct cli *cli, struct err *err)
{
	scoped_str struct str program = {0};
	int r = program_find("cloche-remote", &program, err);

	if (r < 0)
		return r;
	execv(program.p, cli->argv);
	return err_set(err, -errno, "start '%s': %m", program.p);
}
