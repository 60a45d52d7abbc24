/* SPDX-License-Identifier: Apache-2.0 */
/* cloche gc: mends what supervisors left that were killed, and removes what is too old or too much. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/image_choice.h"
#include "cli/layers.h"
#include "cli/old_records.h"
#include "cli/option.h"
#include "cli/verb.h"
#include "launcher/mend.h"
#include "util/aside.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "view/view_text.h"

struct gc_options {
	int64_t older_ms, max_bytes;
};

static const struct option rows[] = {
	{"older", 0, "AGE",
		"remove records that ended, with changes that were not applied, and images that "
		"were not used, for that long, such as 30d",
		OPTION_DURATION, offsetof(struct gc_options, older_ms)},
	{"max", 0, "SIZE",
		"remove the oldest records, and images not used for longest, until each take no "
		"more than this, such as 20G",
		OPTION_SIZE, offsetof(struct gc_options, max_bytes)},
	{0},
};

static const struct option_group groups[] = {{"Age and size", rows, 0, NULL}, {0}};

struct gc_done {
	int n_mended;
	struct old_records_removed old;
	struct layers_collected collected;
};

static void tell_count(int n, const char *what, const char *how)
{
	if (n > 0)
		printf("%d %s%s %s\n", n, what, n == 1 ? "" : "s", how);
}

static void tell_old(const struct old_records_removed *old)
{
	scoped_str struct str bytes = {0};

	view_text_add_bytes(&bytes, old->bytes);
	if (old->records > 0)
		printf("%d record%s removed that aged out, %s\n", old->records,
			old->records == 1 ? "" : "s", bytes.p);
	tell_count(
		old->pending, "record", "over the size stay: with changes that were not applied");
}

static void tell(const struct cli *cli, const struct gc_done *done)
{
	if (cli->json || cli->jsonl) {
		printf("{\"mended\":%d,\"records\":%d,\"images\":%d,\"layers\":%d}\n",
			done->n_mended, done->old.records, done->collected.images,
			done->collected.layers);
		return;
	}
	if (cli->quiet)
		return;
	printf("%d sandbox%s mended\n", done->n_mended, done->n_mended == 1 ? "" : "es");
	tell_old(&done->old);
	tell_count(done->collected.images, "image", "forgotten");
	tell_count(done->collected.layers, "layer", "removed that nothing uses");
}

/* What can be done is done, whatever cannot. */
static int remove_old(
	const struct cli *cli, const struct gc_options *o, struct gc_done *done, struct err *err)
{
	const struct old_records_limits records = {o->older_ms, o->max_bytes};
	const struct image_refs_limits images = {o->older_ms, o->max_bytes};
	struct err why = {0};
	int failed = old_records_remove(cli, &records, &done->old, &why);
	int r = image_choice_clean(cli, err);

	if (r >= 0)
		r = layers_collect(cli->state_dir, &images, &done->collected, err);
	if (r >= 0 && failed < 0)
		r = err_set(err, failed, "%s", why.msg);
	return r;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	scoped_mem char *trash = mem_printf("%s/trash", cli->state_dir);
	struct gc_done done = {0};
	int r = cli_need_root(err), removed;

	if (r < 0)
		return r;
	r = done.n_mended = mend_all(cli->state_dir, cli->run_dir, 0, err);
	removed = aside_empty(trash);
	if (r >= 0 && removed < 0 && removed != -ENOENT)
		r = err_set(err, removed, "remove what is in '%s': %m", trash);
	if (r >= 0)
		r = remove_old(cli, options, &done, err);
	if (r < 0)
		return r;
	tell(cli, &done);
	return 0;
}

const struct verb verb_gc = {
	.name = "gc",
	.class = VERB_CARE,
	.usage = "",
	.help = "mend records and remove what killed sandboxes left behind",
	.text = "Layers that nothing uses any more go too. Records, changes and images stay "
		"without "
		"an option.\nChanges that were not applied go by age alone; what accounts of "
		"`cloche "
		"serve` have stays as\nlong as its configuration says. `cloche verify` knows what "
		"aged out.",
	.groups = groups,
	.options_size = sizeof(struct gc_options),
	.run = run,
};
