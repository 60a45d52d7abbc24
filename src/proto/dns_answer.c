/* SPDX-License-Identifier: Apache-2.0 */
/* An answer is gone through three times: to see that every part of it is well formed, to find the chain of aliases
 * from the name that was asked, and to keep the records of the names on it. So 64 KB that are made to cost as much as
 * they can cost 20 ms. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "proto/dns_name.h"
#include "proto/dns_wire.h"

#define ALIASES_MAX 64
#define TTL_SIGN    0x80000000u
#define TTL_MAX     86400 /* names are remembered for no longer either */

/* Goes through the records behind the question. */
struct walk {
	struct dns_cursor c;
	uint16_t left[DNS_SECTIONS];
	size_t section;
};

/* The next record: 1, 0 at the end, -EBADMSG. */
static int next_record(struct walk *walk, struct dns_record *ret)
{
	struct dns_cursor *c = &walk->c;
	struct dns_name owner;

	while (walk->section < DNS_SECTIONS && walk->left[walk->section] == 0)
		walk->section++;
	if (walk->section == DNS_SECTIONS)
		return 0;
	walk->left[walk->section]--;
	ret->owner_at = (uint16_t)c->at;
	ret->is_authority = walk->section == 2;
	if (dns_name_read(c, true, &owner) < 0)
		return -EBADMSG;
	ret->type = (uint16_t)dns_cursor_int(c, 2);
	ret->class = (uint16_t)dns_cursor_int(c, 2);
	ret->ttl = dns_cursor_int(c, 4);
	if (ret->ttl & TTL_SIGN)
		ret->ttl = 0; /* RFC 2181, section 8 */
	if (ret->ttl > TTL_MAX)
		ret->ttl = TTL_MAX;
	ret->data_len = (uint16_t)dns_cursor_int(c, 2);
	ret->data_at = (uint16_t)c->at;
	dns_cursor_skip(c, ret->data_len);
	return c->bad ? -EBADMSG : 1;
}

/* Whether the data of a record is what its type says, to the last byte. */
static bool is_sound(struct slice message, const struct dns_record *record)
{
	size_t end = (size_t)record->data_at + record->data_len;
	/* A name in it may point back, but not run past its end. */
	struct dns_cursor c =
		dns_cursor_at((struct slice){.p = message.p, .len = end}, record->data_at);
	struct dns_name name;

	if (record->type == DNS_A || record->type == DNS_AAAA)
		return record->data_len == (record->type == DNS_A ? 4 : 16);
	for (const char *piece = dns_layout_of(record->type)->pieces; *piece; piece++)
		switch (*piece) {
		case 'n':
			if (dns_name_read(&c, true, &name) < 0)
				return false;
			break;
		case 's':
			dns_cursor_skip(&c, dns_cursor_int(&c, 1));
			break;
		case 'S':
			while (!c.bad && c.at < end)
				dns_cursor_skip(&c, dns_cursor_int(&c, 1));
			break;
		case '*':
			return !c.bad;
		default:
			dns_cursor_skip(&c, (size_t)(*piece - '0'));
		}
	return !c.bad && c.at == end;
}

/* Everything is well formed. Takes the rest of the rcode from the OPT record, if there is one. */
static int check(struct walk walk, struct dns_answer *answer)
{
	struct dns_record record;
	struct dns_opt opt;
	int r;

	while ((r = next_record(&walk, &record)) > 0) {
		if (record.type != DNS_OPT) {
			if (!is_sound(answer->message, &record))
				return -EBADMSG;
			continue;
		}
		walk.c.at = record.data_at - 8u; /* back behind its type */
		if (walk.section != 3 || dns_opt_read(&walk.c, &opt) < 0)
			return -EBADMSG;
		answer->rcode = (enum dns_rcode)((unsigned)opt.rcode_high << 4 | answer->rcode);
	}
	return r;
}

/* Aliases of any name, as far as there is room: one that is left out ends the chain before it. */
struct aliases {
	struct dns_record records[ALIASES_MAX];
	size_t n;
};

static void list_aliases(struct aliases *aliases, struct walk walk)
{
	struct dns_record record;

	while (next_record(&walk, &record) > 0 && walk.section == 1)
		if (record.type == DNS_CNAME && record.class == DNS_CLASS_IN &&
			aliases->n < ALIASES_MAX)
			aliases->records[aliases->n++] = record;
}

/* The alias of the last name of the chain, if it has one. Of several, which is forbidden, the first. */
static bool find_alias(
	const struct dns_answer *answer, const struct aliases *aliases, struct dns_name *ret)
{
	const struct dns_name *last = &answer->chain[answer->n_chain - 1];

	for (size_t i = 0; i < aliases->n; i++) {
		const struct dns_record *record = &aliases->records[i];
		struct dns_name owner = dns_name_get(answer->message, record->owner_at);

		if (dns_name_eq(&owner, last)) {
			*ret = dns_name_get(answer->message, record->data_at);
			return true;
		}
	}
	return false;
}

/* The place of a name on the chain, or n_chain. */
static size_t place_of(const struct dns_answer *answer, const struct dns_name *name)
{
	size_t i = 0;

	while (i < answer->n_chain && !dns_name_eq(&answer->chain[i], name))
		i++;
	return i;
}

static int find_chain(struct dns_answer *answer, const struct dns_query *query, struct walk walk)
{
	struct aliases aliases = {.n = 0};
	struct dns_name next;

	answer->chain[0] = query->name;
	answer->n_chain = 1;
	if (query->type == DNS_CNAME || query->type == DNS_ANY)
		return 0;
	list_aliases(&aliases, walk);
	while (find_alias(answer, &aliases, &next)) {
		if (answer->n_chain == DNS_CHAIN_MAX || place_of(answer, &next) < answer->n_chain)
			return -EBADMSG;
		answer->chain[answer->n_chain++] = next;
	}
	return 0;
}

/* An alias on the way, or what was asked for at the end of the chain, or a signature of either. */
static bool answers(const struct dns_answer *answer, const struct dns_query *query,
	const struct dns_record *record)
{
	struct dns_name owner = dns_name_get(answer->message, record->owner_at), alias;
	size_t place = place_of(answer, &owner);

	if (place == answer->n_chain)
		return false;
	if (record->type == DNS_RRSIG)
		return query->dnssec_ok || query->type == DNS_RRSIG || query->type == DNS_ANY;
	if (place + 1 == answer->n_chain)
		return record->type == query->type || query->type == DNS_ANY;
	if (record->type != DNS_CNAME)
		return false;
	alias = dns_name_get(answer->message, record->data_at);
	return dns_name_eq(&alias, &answer->chain[place + 1]);
}

/* Why there is no answer, for who keeps that in mind or wants it proved. */
static bool explains(const struct dns_query *query, const struct dns_record *record)
{
	return record->type == DNS_SOA ||
	       (query->dnssec_ok && (record->type == DNS_NSEC || record->type == DNS_NSEC3 ||
					    record->type == DNS_RRSIG));
}

static void keep_records(struct dns_answer *answer, const struct dns_query *query, struct walk walk)
{
	struct dns_record record;

	while (next_record(&walk, &record) > 0 && walk.section < 3) {
		if (record.class != DNS_CLASS_IN ||
			!(record.is_authority ? explains(query, &record)
					      : answers(answer, query, &record)))
			continue;
		if (answer->n_records == DNS_RECORDS_MAX) {
			answer->n_dropped++;
			continue;
		}
		if (!record.is_authority && (record.ttl < answer->ttl || answer->n_records == 0))
			answer->ttl = record.ttl;
		answer->records[answer->n_records++] = record;
	}
}

/* Whether the head and the question are of an answer to this query. */
static int match(struct walk *walk, const struct dns_head *head, const struct dns_query *query)
{
	struct dns_name name;

	/* A server that could not read the question need not repeat it. */
	if (head->count[0] == 0 && head->flags & DNS_FLAG_RCODE)
		return 0;
	if (head->count[0] != 1 || dns_name_read(&walk->c, false, &name) < 0)
		return -EBADMSG;
	if (dns_cursor_int(&walk->c, 2) != query->type ||
		dns_cursor_int(&walk->c, 2) != query->class || !dns_name_eq(&name, &query->name))
		return walk->c.bad ? -EBADMSG : -ENOMSG;
	return 0;
}

int dns_answer_read(
	struct slice in, const struct dns_query *query, uint16_t id, struct dns_answer *ret)
{
	struct walk walk = {.c = dns_cursor_at(in, 0), .section = 1};
	struct dns_head head;
	int r;

	dns_head_read(&walk.c, &head);
	if (walk.c.bad || in.len > DNS_MESSAGE_MAX)
		return -EBADMSG;
	if (head.id != id || !(head.flags & DNS_FLAG_QR) || head.flags & DNS_FLAG_OPCODE)
		return -ENOMSG;
	r = match(&walk, &head, query);
	if (r < 0)
		return r;
	memcpy(walk.left, head.count, sizeof(walk.left));
	ret->message = in;
	ret->rcode = (enum dns_rcode)(head.flags & DNS_FLAG_RCODE);
	ret->truncated = head.flags & DNS_FLAG_TC;
	ret->authentic = head.flags & DNS_FLAG_AD;
	ret->n_chain = ret->n_records = ret->n_dropped = 0;
	ret->ttl = 0;
	if (ret->truncated)
		return 0;
	r = check(walk, ret);
	if (r < 0)
		return r;
	r = find_chain(ret, query, walk);
	if (r < 0)
		return r;
	keep_records(ret, query, walk);
	return 0;
}

bool dns_record_address(
	const struct dns_answer *answer, const struct dns_record *record, uint8_t ret[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const char *data = answer->message.p + record->data_at;

	if (record->is_authority || (record->type != DNS_A && record->type != DNS_AAAA))
		return false;
	if (record->type == DNS_A) {
		memcpy(ret, mapped, sizeof(mapped));
		memcpy(ret + sizeof(mapped), data, 4);
	} else {
		memcpy(ret, data, 16);
	}
	return true;
}
