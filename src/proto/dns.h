/* SPDX-License-Identifier: Apache-2.0 */
/* DNS messages (RFC 1035, EDNS: RFC 6891). A message is read strictly and never passed on as it came: what goes
 * to a resolver, and what goes back to who asked, is written anew from what was understood, so that neither can
 * carry what the other side of the gateway was not meant to see (options, odd flags, records nobody asked for). */
#ifndef PROTO_DNS_H
#define PROTO_DNS_H

#include <stdint.h>

#include "util/slice.h"
#include "util/str.h"

#define DNS_NAME_MAX    255 /* labels with their lengths and the root, as they stand in a message */
#define DNS_TEXT_MAX    1024 /* a name in words: four characters for each byte at most, and a NUL */
#define DNS_UDP_MIN     512  /* what any client takes over UDP */
#define DNS_UDP_MAX     1232 /* what passes any network unfragmented */
#define DNS_MESSAGE_MAX 65535
#define DNS_CHAIN_MAX   17  /* the name that was asked, and its aliases one after the other */
#define DNS_RECORDS_MAX 256 /* of one answer; the rest is dropped, and counted */

enum dns_type {
	DNS_A = 1,
	DNS_NS = 2,
	DNS_CNAME = 5,
	DNS_SOA = 6,
	DNS_PTR = 12,
	DNS_MX = 15,
	DNS_TXT = 16,
	DNS_AAAA = 28,
	DNS_SRV = 33,
	DNS_OPT = 41,
	DNS_RRSIG = 46,
	DNS_NSEC = 47,
	DNS_NSEC3 = 50,
	DNS_SVCB = 64,
	DNS_HTTPS = 65,
	DNS_ANY = 255,
};

#define DNS_CLASS_IN 1

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16,
};

struct dns_name {
	uint8_t len; /* 1 for the root, 0 where there is no name */
	uint8_t wire[DNS_NAME_MAX];
};

struct dns_query {
	uint16_t id, type, class;
	uint8_t opcode;       /* 0, or fault is set */
	enum dns_rcode fault; /* not DNS_NOERROR: answer with it, do not look the name up */
	bool recursion_desired, checking_disabled, wants_authentic, dnssec_ok;
	bool has_edns;
	uint16_t udp_size;    /* what the client takes over UDP */
	struct dns_name name; /* with its case, which answers repeat; len 0: it could not be read */
	bool is_host; /* a name that rules can speak of: letters, digits, '-', '_', not the root, no address */
	char host
		[DNS_TEXT_MAX]; /* in lower case, without the final dot; other bytes as \DDD; "." for the root */
};

/* -EBADMSG where no answer is due: not a query, or shorter than a message's head. */
int dns_query_read(struct slice in, struct dns_query *ret);
/* The query to ask a resolver instead: the name in lower case, nothing of the client's but its name, type, class and
 * the wish for signatures. edns false: for servers that answer DNS_FORMERR or DNS_NOTIMP to what they do not know. */
void dns_query_write(struct str *out, const struct dns_query *query, uint16_t id, bool edns);

/* One record of an answer. Offsets are into the message. */
struct dns_record {
	uint16_t type, class, owner_at, data_at, data_len;
	uint32_t ttl;
	bool is_authority; /* from the second section: says why there is no answer */
};

/* Only what was asked for: records of the name, of its aliases, and what says that there are none. */
struct dns_answer {
	struct slice message; /* borrowed */
	enum dns_rcode rcode;
	bool truncated; /* ask again over TCP; nothing else was read */
	bool authentic;
	struct dns_name chain[DNS_CHAIN_MAX];
	size_t n_chain; /* 1: no alias */
	struct dns_record records[DNS_RECORDS_MAX];
	size_t n_records, n_dropped;
	uint32_t ttl; /* the shortest of the records that answer; 0 where there is none */
};

/* Reads what a resolver said to dns_query_write(query, id). -ENOMSG where this answers something else (go on waiting),
 * -EBADMSG where it is malformed; *ret holds nothing of use then. The records point into the message, which has to
 * stay. */
int dns_answer_read(
	struct slice in, const struct dns_query *query, uint16_t id, struct dns_answer *ret);
/* The address a record holds, v4 as ::ffff:a.b.c.d; false for other types. */
bool dns_record_address(
	const struct dns_answer *answer, const struct dns_record *record, uint8_t ret[16]);
/* A record in words: "192.0.2.1", "2001:db8::1", "CNAME a.example.org", "MX 10 mail.example.org", "TYPE99 6162". */
void dns_record_text(
	const struct dns_answer *answer, const struct dns_record *record, struct str *out);

/* Replies to a client. Added to out; one that is longer than max (query->udp_size, or DNS_MESSAGE_MAX over TCP) is cut
 * to its question and says so. */

/* With no record: NXDOMAIN, REFUSED, SERVFAIL...; DNS_NOERROR: the name is there, but has none of this type. */
void dns_reply_empty(struct str *out, const struct dns_query *query, enum dns_rcode rcode);
/* One address (16 bytes, v4 as ::ffff:a.b.c.d) if the query is for its family; else as dns_reply_empty(). */
void dns_reply_address(
	struct str *out, const struct dns_query *query, const uint8_t address[16], uint32_t ttl);

#define DNS_STRIP_ECH \
	1u /* HTTPS and SVCB records lose the key that hides server names, and address hints */
#define DNS_STRIP_SERVICES 2u /* HTTPS and SVCB records are left out */
/* What the resolver said, written anew. */
void dns_reply_answer(struct str *out, const struct dns_query *query,
	const struct dns_answer *answer, unsigned strip, size_t max);

/* "A", "HTTPS", "TYPE65399". Valid until the next call by the same thread. */
const char *dns_type_name(uint16_t type);
/* "NXDOMAIN", "RCODE23". As above. */
const char *dns_rcode_name(enum dns_rcode rcode);

#endif
