/* SPDX-License-Identifier: Apache-2.0 */
/* The program cloche-remote: what cloche becomes where a control plane is named. */
#include "cli/entry.h"
#include "remote/remote_verbs.h"

int main(int argc, char **argv)
{
	return entry_main(&(struct entry){.run = remote_verbs_run}, argc, argv);
}
