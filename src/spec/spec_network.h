/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox may reach, and how its traffic is looked at. Part of a spec (spec.h); the gateway gets it as
 * JSON of its own. Rules, host maps and published ports are kept parsed or as the checked texts people write.
 *
 * What only the gateway may know (values of secrets, the upstream proxy's credentials) is in no JSON but that of
 * spec_hidden_write(), which goes into a memory file that whoever passes it on does not read. */
#ifndef SPEC_SPEC_NETWORK_H
#define SPEC_SPEC_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"
#include "util/jsonw.h"
#include "util/slice.h"
#include "util/str.h"

#define SPEC_BODY_LIMIT     65536       /* bytes of a body that are kept, without --body-limit */
#define SPEC_BODY_LIMIT_MAX (64U << 20) /* with it, at most */

/* The one reserved name: the way to the control plane from inside. It leads nowhere else, whatever a resolver says. */
#define SPEC_PLANE_HOST "cloche.internal"
#define SPEC_PLANE_PORT 80

/* A list of strings the spec owns. */
struct spec_words {
	char **items;
	size_t n;
};
void spec_words_add(struct spec_words *words, const char *word);
void spec_words_done(struct spec_words *words);

enum spec_net {
	SPEC_NET_NONE,  /* loopback only: no gateway */
	SPEC_NET_ALLOW, /* what allow names */
	SPEC_NET_OPEN,  /* any public destination, and what allow names */
};
const char *spec_net_name(enum spec_net net); /* "open" */

enum spec_tls {
	SPEC_TLS_INTERCEPT,
	SPEC_TLS_PASSTHROUGH,
};
const char *spec_tls_name(enum spec_tls tls); /* "intercept" */

/* What a rule "@name" stands for, as it was when the sandbox was asked for. */
struct spec_set {
	char *name; /* with its @ */
	struct spec_words rules;
};

/* A name that leads to an address of the user's choice, private ones too. */
struct spec_host_map {
	char *name;       /* lower case, no final dot; "*.name" for all below it */
	uint16_t port;    /* 0: any */
	char *address;    /* numeric */
	uint16_t to_port; /* 0: the same */
};

/* A port of the sandbox on the host. */
struct spec_publish {
	char *address; /* numeric, of the host */
	uint16_t host_port, port;
};

struct spec_secret {
	char *name; /* of the variable */
	struct spec_words
		hosts; /* patterns as in rules: HOST[:PORT], *.HOST; the only ones that get the value */
	bool plain; /* also without TLS */
	struct spec_words
		pass; /* patterns likewise: bodies on the way there may hold the stand-in, as it is */
	char *stand_in; /* what the variable holds inside (spec_stand_in.h); not in a record */
	char *value;    /* NULL where it was not handed over */
};

void spec_host_map_done(struct spec_host_map *map);
void spec_set_done(struct spec_set *set);
void spec_secret_done(struct spec_secret *secret);

struct spec_network {
	enum spec_net net;
	bool has_net;                  /* it was named; not in JSON, where it always is */
	struct spec_words allow, deny; /* rules (spec_rule.h) or names of sets */
	struct spec_set *sets;         /* every "@name" of allow and deny is here */
	size_t n_sets;
	bool shadow; /* what rules refuse is recorded and let through */
	bool ask;    /* hold what no rule names, ask a person */
	struct spec_host_map *maps;
	size_t n_maps;
	struct spec_words resolvers; /* "ADDR:PORT"; none: the host's own */
	enum spec_tls tls;
	struct spec_words tls_passthrough; /* names, "*.name": their TLS is not opened */
	char *upstream_ca; /* PEM, more roots for upstream's certificates; in a record "sha256:..." of it */
	char *upstream_proxy;              /* "http://HOST:PORT", without credentials */
	char *proxy_user, *proxy_password; /* hidden */
	bool control_plane;                /* SPEC_PLANE_HOST leads to it */
	bool record_responses;
	int64_t body_limit; /* bytes kept of a body */
	struct spec_publish *publish;
	size_t n_publish;
	struct spec_secret *secrets;
	size_t n_secrets;
};

void spec_network_init(struct spec_network *net); /* the defaults of docs/spec.md */
void spec_network_done(struct spec_network *net); /* overwrites what is hidden */

/* The JSON object of docs/spec.md, without what is hidden. for_record leaves out stand-ins and the text of CAs. */
void spec_network_write(struct jsonw *j, const struct spec_network *net, bool for_record);
/* Reads one. Lists that are there replace. -EINVAL with one sentence. */
int spec_network_read(struct spec_network *net, struct slice json, struct err *err);

/* Where no mode was named: rules to allow, or --ask, mean SPEC_NET_ALLOW. */
void spec_network_settle(struct spec_network *net);

/* One line: {"secrets":[{"name","value"}],"upstream_proxy":{"user","password"}}. False, and nothing is written,
 * where nothing is hidden. */
bool spec_hidden_write(struct str *out, const struct spec_network *net);
/* Overwrites and frees what is hidden: it has been handed over. */
void spec_hidden_forget(struct spec_network *net);
/* Fills such a line into the network it belongs to; other keys are passed over. Credentials that come with the "url" of another
 * proxy than the network's are left out. */
int spec_hidden_read(struct spec_network *net, struct slice json, struct err *err);

/* A proxy as a whole, hidden as well: {"url":"http://HOST:PORT","user","password"}, the last two where it has some; null:
 * none. Reading one replaces what the network had. */
void spec_hidden_write_proxy(struct str *out, const struct spec_network *net);
int spec_hidden_read_proxy(struct spec_network *net, struct slice json, struct err *err);

/* Checks what can be known without asking the network: rules, sets, names, that options fit together, that a
 * secret's hosts are allowed. One clear sentence. */
int spec_network_check(const struct spec_network *net, struct err *err);

#endif
