/* SPDX-License-Identifier: Apache-2.0 */
/* Where it went: one entry for each address and port, and name that led there.
 *
 * - What belongs to one flow (its connect, requests, messages, end) is one entry's, whatever its events say of the
 *   host. A name that was refused before there was an address has an entry without one, unless it has another.
 * - bytes: as flows end; of one that lasts nothing is counted yet.
 * - failed: nothing there succeeded: each try failed or was refused.
 * - refused: the rules said no at least once; with --shadow it went through all the same (shadow).
 * - Listening sockets and lookups of names that were not refused make no entry; network_table_lookups() has the latter.
 *
 * Memory goes by entries, by flows, and by requests: past NETWORK_TABLE_KEPT_MAX bytes of them their bodies are left
 * out, past twice that they are only counted. */
#ifndef VIEW_NETWORK_TABLE_H
#define VIEW_NETWORK_TABLE_H

#include "event/event.h"
#include "util/scoped.h"
#include "util/str.h"
#include "view/idset.h"
#include "view/network_body.h"
#include "view/network_lookups.h"
#include "view/view_filter.h"
#include "view/view_text.h"

#define NETWORK_TABLE_KEPT_MAX    (256U << 20)
#define NETWORK_TABLE_SECRETS_MAX 64U /* names told of one entry */

struct network_request {
	int64_t at_ms, status;  /* status 0: no answer */
	int64_t sent, received; /* bytes of bodies, as far as they are known */
	struct slice method;
	struct str url; /* as it came */
	struct str json;
};

struct network_secret {
	struct slice name;
	int64_t used;   /* requests and messages */
	int64_t passed; /* requests whose body took its stand-in along */
};

struct network_entry {
	struct slice host, address, protocol; /* empty: none, not known */
	int64_t port;                         /* 0: none */
	int64_t bytes_out, bytes_in, connects, n_refused;
	bool failed, refused, shadow;
	bool unreadable; /* a program trusts no certificate of ours, in one flow at least */
	struct slice rule, reason; /* of the last refusal */
	struct slice error;        /* of the last failure */
	struct slice tls;          /* of the last flow that says */
	struct network_secret
		*secrets; /* that were put in on the way there, or whose stand-in went */
	size_t n_secrets;
	struct idset processes, execs; /* execs: for network_table_execs() */
	int64_t first_ns, first_ms;
	uint64_t first_seq;
	struct network_request *requests;
	size_t n_requests, cap_requests;
	int64_t requests_more; /* that were only counted */
	struct str messages;   /* WebSocket messages as JSON, with commas between */
	int64_t n_messages, messages_more;
	bool bodies_cut, succeeded; /* succeeded: as far as no flow says otherwise */
};

struct network_table;

struct network_table *network_table_new(const struct view_filter *filter);
void network_table_free(struct network_table *table);
SCOPED_TYPE(network_table)

/* No bodies from here on: for those who only want the list. */
void network_table_leave_bodies(struct network_table *table);
/* Reads bodies that lie beside their event from here on; ctx lives as long as the table is added to. */
void network_table_read_bodies(struct network_table *table, network_body_fn read, void *ctx);
void network_table_add(struct network_table *table, const struct event *ev);

/* Judges flows and sorts entries by their first event; returns how many there are. Those below do it first; more events may follow. */
size_t network_table_settle(struct network_table *table);
const struct network_entry *network_table_get(const struct network_table *table, size_t i);
const struct slice *network_table_execs(const struct network_table *table);

/* Names that were asked for; which of them have an entry is as of the last network_table_settle(). */
const struct network_lookups *network_table_lookups(const struct network_table *table);

/* `net --json`. */
void network_table_json(struct network_table *table, struct str *out);
void network_table_text(
	struct network_table *table, const struct view_style *style, struct str *out);

#endif
