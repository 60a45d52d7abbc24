/* SPDX-License-Identifier: Apache-2.0 */
/* What the network of an account's sandbox may be where the account may not reach private places. */
#ifndef SPEC_SPEC_WITHIN_H
#define SPEC_SPEC_WITHIN_H

#include "spec/spec_network.h"
#include "util/err.h"

/* The end of a sentence about what an account may not name: who can change that. */
#define SPEC_WITHIN_WHO(key) \
	"; whoever runs the server can allow it (\"" key "\" in its configuration)"

/* -EPERM, with a sentence that names the key, where anything in it can lead to a private address, past the rules, or to a
 * port of the host. To be asked after spec_network_settle() and before the host's own sets are filled in: sets that are
 * there then are the account's words, too. */
int spec_within_network(const struct spec_network *net, struct err *err);

#endif
