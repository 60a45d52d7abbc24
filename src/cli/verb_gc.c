/* SPDX-License-Identifier: Apache-2.0 */
/* cloche gc: mends what supervisors left that were killed. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/image_choice.h"
#include "cli/layers.h"
#include "cli/option.h"
#include "cli/verb.h"
#include "launcher/mend.h"
#include "util/aside.h"
#include "util/mem.h"
#include "util/scoped.h"

static const struct option rows[] = {
	{"older", 0, "AGE", "remove images that were not used for that long, such as 30d",
		OPTION_DURATION, offsetof(struct image_refs_limits, older_ms)},
	{"max", 0, "SIZE", "keep the images used last that take no more than this, such as 20G",
		OPTION_SIZE, offsetof(struct image_refs_limits, max_bytes)},
	{0},
};

static const struct option_group groups[] = {{"Images", rows, 0, NULL}, {0}};

static void tell_count(int n, const char *what, const char *how)
{
	if (n > 0)
		printf("%d %s%s %s\n", n, what, n == 1 ? "" : "s", how);
}

static void tell(const struct cli *cli, int n_mended, const struct layers_collected *collected)
{
	if (cli->json || cli->jsonl) {
		printf("{\"mended\":%d,\"images\":%d,\"layers\":%d}\n", n_mended, collected->images,
			collected->layers);
		return;
	}
	if (cli->quiet)
		return;
	printf("%d sandbox%s mended\n", n_mended, n_mended == 1 ? "" : "es");
	tell_count(collected->images, "image", "forgotten");
	tell_count(collected->layers, "layer", "removed that nothing uses");
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	scoped_mem char *trash = mem_printf("%s/trash", cli->state_dir);
	struct layers_collected collected;
	int r = cli_need_root(err), n_mended, removed;

	if (r < 0)
		return r;
	r = n_mended = mend_all(cli->state_dir, cli->run_dir, 0, err);
	removed = aside_empty(trash);
	if (r >= 0 && removed < 0 && removed != -ENOENT)
		r = err_set(err, removed, "remove what is in '%s': %m", trash);
	if (r >= 0)
		r = image_choice_clean(cli, err);
	if (r >= 0)
		r = layers_collect(cli->state_dir, options, &collected, err);
	if (r < 0)
		return r;
	tell(cli, n_mended, &collected);
	return 0;
}

const struct verb verb_gc = {
	.name = "gc",
	.class = VERB_CARE,
	.usage = "",
	.help = "mend records and remove what killed sandboxes left behind",
	.text = "Layers that nothing uses any more go too. Images stay without an option, records "
		"and changes\nin any case: `cloche rm --record` and --changes remove those.",
	.groups = groups,
	.options_size = sizeof(struct image_refs_limits),
	.run = run,
};
