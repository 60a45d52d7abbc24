/* SPDX-License-Identifier: Apache-2.0 */
/* Names that were asked for outside. Each question is data that left, also where nothing was ever sent to the name. */
#ifndef VIEW_NETWORK_LOOKUPS_H
#define VIEW_NETWORK_LOOKUPS_H

#include "event/event.h"
#include "util/scoped.h"

#define NETWORK_LOOKUPS_MAX 4096 /* names that are kept */

struct network_lookup {
	struct slice name, error; /* error: "NXDOMAIN", where no question was answered */
	bool is_reached;          /* or tried: an entry tells it */
};

struct network_lookups;

struct network_lookups *network_lookups_new(void);
void network_lookups_free(struct network_lookups *lookups);
SCOPED_TYPE(network_lookups)

/* Takes a net.dns that was not refused. */
void network_lookups_add(struct network_lookups *lookups, const struct event *ev);
/* A name that has an entry, from here on. */
void network_lookups_reached(struct network_lookups *lookups, struct slice name);

size_t network_lookups_n(const struct network_lookups *lookups);
const struct network_lookup *network_lookups_get(const struct network_lookups *lookups, size_t i);
/* Names that nothing was tried with; each question for a name that was not kept counts as one, too. */
int64_t network_lookups_only(const struct network_lookups *lookups);
/* Those of them that nobody answered, or with a failure: NXDOMAIN is an answer. *ret_error: of the last such. */
int64_t network_lookups_unanswered(const struct network_lookups *lookups, struct slice *ret_error);

#endif
