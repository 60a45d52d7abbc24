/* SPDX-License-Identifier: Apache-2.0 */
/* cloche gc: mends what supervisors left that were killed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "cli/image_choice.h"
#include "cli/layers.h"
#include "cli/verb.h"
#include "launcher/mend.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

static void tell(const struct cli *cli, int n_mended, int n_layers)
{
	if (cli->json)
		printf("{\"mended\":%d,\"layers\":%d}\n", n_mended, n_layers);
	else if (!cli->quiet)
		printf("%d sandbox%s mended\n", n_mended, n_mended == 1 ? "" : "es");
	if (n_layers > 0 && !cli->json && !cli->quiet)
		printf("%d layer%s removed that nothing uses\n", n_layers,
			n_layers == 1 ? "" : "s");
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	scoped_mem char *trash = mem_printf("%s/trash", cli->state_dir);
	int r = mend_all(cli->state_dir, cli->run_dir, 0, err);
	int removed = path_remove_all(AT_FDCWD, trash), cleaned;

	if (r >= 0 && removed < 0 &&
		removed != -ENOTEMPTY) /* a sandbox that ends meanwhile adds to it */
		r = err_set(err, removed, "remove '%s': %m", trash);
	cleaned = r < 0 ? r : image_choice_clean(cli, err);
	if (cleaned >= 0)
		removed = layers_collect(cli->state_dir, err);
	if (cleaned < 0 || removed < 0)
		return cleaned < 0 ? cleaned : removed;
	tell(cli, r, removed);
	return 0;
}

const struct verb verb_gc = {
	.name = "gc",
	.class = VERB_CARE,
	.usage = "",
	.help = "mend records and remove what killed sandboxes left behind",
	.run = run,
};
