/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of a verb fill, for verbs that are done in two ways: on this host, and by a control plane
 * (src/remote). */
#ifndef CLI_VERB_OPTIONS_H
#define CLI_VERB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/changes_trace.h"
#include "cli/source.h"
#include "spec/spec.h"

struct ps_options {
	bool all;
	struct spec_words labels; /* K=V */
	const char *since;
};

struct rm_options {
	bool record, changes, bodies, is_aged;
};

struct changes_options {
	struct changes_part part;
	bool full, verbose;
};
/* `changes --json` as --json, --jsonl or text. */
int verb_changes_print(const struct cli *cli, const json_t *list, bool verbose, struct err *err);

struct diff_options {
	bool exit_code;
};

struct manifest_options {
	const char *check;
	bool host, all;
};

struct net_rules_options {
	struct spec_network net; /* what is added: allow, deny, their sets; net where has_net */
	struct spec_words remove;
	bool reset, is_forbidden;            /* by within */
	const char *rules, *within, *hidden; /* files; borrowed */
	bool has_proxy; /* net.upstream_proxy takes the place of the one there is; NULL: none does */
};

/* What is named by --rules, into net. */
int verb_net_rules_read(struct net_rules_options *o, struct err *err);
int verb_net_rules_print(const struct cli *cli, const json_t *network, struct err *err);

struct watch_files_options {
	bool bounds, wait;
	int64_t files;
};

#endif
