/* SPDX-License-Identifier: Apache-2.0 */
/* Records that are a control plane's and not this host's. Whoever knows how to reach them (src/remote) gives the cli one
 * of these; without one, it looks into the state folder. */
#ifndef CLI_ELSEWHERE_H
#define CLI_ELSEWHERE_H

#include "cli/cli.h"
#include "cli/feed.h"
#include "cli/summary_source.h"
#include "manifest/tree.h"
#include "spec/spec.h"
#include "util/err.h"
#include "util/id.h"

struct source_ids;

struct elsewhere {
	/* As records_resolve(). */
	int (*resolve)(
		const struct cli *cli, const char *text, char ret_id[ID_SIZE], struct err *err);
	/* Adds those that have all of the labels (K=V), oldest first; none is fine. */
	int (*find)(const struct cli *cli, const struct spec_words *labels, struct source_ids *ids,
		struct err *err);
	/* All events that there are; with follow, those that come, too. The caller's. */
	int (*open)(const struct cli *cli, const char *id, bool follow, struct feed **ret_feed,
		struct err *err);
	/* Adds the summary: as JSON or Markdown with their line end, or as text for people. */
	int (*summary)(const struct cli *cli, const char *id, enum summary_form form, bool color,
		struct str *out, struct err *err);
	/* What lies below a folder of a living sandbox now; root NULL: below where commands start. *ret_root is that folder; both
	 * are the caller's. */
	int (*tree)(const struct cli *cli, const char *id, const char *root, bool all,
		struct tree *ret_tree, char **ret_root, struct err *err);
	/* For feeds that follow: until something came, or for so long. */
	void (*wait)(const struct cli *cli, int timeout_ms);
};

/* Goes on as the program that speaks to a server, with the arguments that this one has. Comes back only where that fails:
 * negative. */
int elsewhere_become(const struct cli *cli, struct err *err);

#endif
