/* SPDX-License-Identifier: Apache-2.0 */
/* Replies are written record by record. A name that was written before is pointed at; only whole names are, which is
 * most of what there is to save. */
#include "proto/dns_name.h"
#include "proto/dns_wire.h"

#define PLACES_MAX 32 /* names that can be pointed at; later ones are written out */

/* Keys of HTTPS and SVCB records (RFC 9460). */
enum service_key {
	KEY_MANDATORY = 0,
	KEY_IPV4HINT = 4,
	KEY_ECH = 5,
	KEY_IPV6HINT = 6,
};

struct writer {
	struct str *out;
	size_t start; /* where the message begins in out */
	const struct dns_query *query;
	uint16_t flags;
	enum dns_rcode rcode;
	uint16_t count[DNS_SECTIONS];
	struct {
		uint16_t at;
		struct dns_name name;
	} places[PLACES_MAX];
	size_t n_places;
};

void dns_put(struct str *out, uint32_t v, size_t bytes)
{
	while (bytes-- > 0)
		str_putc(out, (char)(v >> 8 * bytes & 0xff));
}

void dns_put_opt(struct str *out, bool dnssec_ok, enum dns_rcode rcode)
{
	dns_put(out, 0, 1);
	dns_put(out, DNS_OPT, 2);
	dns_put(out, DNS_UDP_MAX, 2);
	dns_put(out, (uint32_t)rcode >> 4, 1);
	dns_put(out, 0, 1);
	dns_put(out, dnssec_ok ? DNS_FLAG_DO : 0, 2);
	dns_put(out, 0, 2);
}

static void put_name(struct writer *w, const struct dns_name *name, bool compress)
{
	size_t at = w->out->len - w->start;

	for (size_t i = 0; compress && i < w->n_places; i++)
		if (dns_name_eq(&w->places[i].name, name)) {
			dns_put(w->out, 0xc000u | w->places[i].at, 2);
			return;
		}
	str_add(w->out, name->wire, name->len);
	if (name->len > 2 && at < 0x4000 && w->n_places < PLACES_MAX) {
		w->places[w->n_places].at = (uint16_t)at;
		w->places[w->n_places++].name = *name;
	}
}

/* Head and question. The head is written by end(), when the counts are known. */
static void begin(struct writer *w, struct str *out, const struct dns_query *query)
{
	w->out = out;
	w->start = out->len;
	w->query = query;
	w->flags = 0;
	w->rcode = DNS_NOERROR;
	w->n_places = 0;
	memset(w->count, 0, sizeof(w->count));
	dns_put(out, 0, 4);
	dns_put(out, 0, 4);
	dns_put(out, 0, 4);
	if (query->name.len > 0) {
		w->count[0] = 1;
		put_name(w, &query->name, false);
		dns_put(out, query->type, 2);
		dns_put(out, query->class, 2);
	}
}

static uint16_t flags_of(const struct writer *w)
{
	const struct dns_query *query = w->query;
	/* What does not fit without EDNS must not lose its upper half: that could read as success. */
	uint32_t rcode =
		query->has_edns || (uint32_t)w->rcode <= DNS_FLAG_RCODE ? w->rcode : DNS_SERVFAIL;

	return (uint16_t)(DNS_FLAG_QR | (uint32_t)query->opcode << DNS_OPCODE_SHIFT |
			  (query->recursion_desired ? DNS_FLAG_RD : 0) | DNS_FLAG_RA |
			  (query->checking_disabled ? DNS_FLAG_CD : 0) | w->flags |
			  (rcode & DNS_FLAG_RCODE));
}

static void end(struct writer *w)
{
	struct str head = {0};

	if (w->query->has_edns) {
		dns_put_opt(w->out, w->query->dnssec_ok, w->rcode);
		w->count[3]++;
	}
	dns_put(&head, w->query->id, 2);
	dns_put(&head, flags_of(w), 2);
	for (size_t i = 0; i < DNS_SECTIONS; i++)
		dns_put(&head, w->count[i], 2);
	memcpy(w->out->p + w->start, head.p, head.len);
	str_done(&head);
}

void dns_reply_empty(struct str *out, const struct dns_query *query, enum dns_rcode rcode)
{
	struct writer w;

	begin(&w, out, query);
	w.rcode = rcode;
	end(&w);
}

/* All of a record but its data; gives the place of the length, which put_length() fills in. */
static size_t put_record_head(
	struct writer *w, const struct dns_name *owner, const struct dns_record *record)
{
	put_name(w, owner, true);
	dns_put(w->out, record->type, 2);
	dns_put(w->out, record->class, 2);
	dns_put(w->out, record->ttl, 4);
	dns_put(w->out, 0, 2);
	return w->out->len - 2;
}

static void put_length(struct writer *w, size_t at)
{
	size_t len = w->out->len - at - 2;

	w->out->p[at] = (char)(len >> 8);
	w->out->p[at + 1] = (char)(len & 0xff);
}

void dns_reply_address(
	struct str *out, const struct dns_query *query, const uint8_t address[16], uint32_t ttl)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool is_v4 = memcmp(address, mapped, sizeof(mapped)) == 0;
	struct dns_record record = {
		.type = is_v4 ? DNS_A : DNS_AAAA, .class = DNS_CLASS_IN, .ttl = ttl};
	struct writer w;
	size_t at;

	begin(&w, out, query);
	if (query->type == record.type || query->type == DNS_ANY) {
		at = put_record_head(&w, &query->name, &record);
		str_add(out, address + (is_v4 ? sizeof(mapped) : 0), is_v4 ? 4 : 16);
		put_length(&w, at);
		w.count[1]++;
	}
	end(&w);
}

static bool is_stripped_key(uint32_t key)
{
	return key == KEY_ECH || key == KEY_IPV4HINT || key == KEY_IPV6HINT;
}

/* The keys of a service, less those that are stripped. False where the record has to go as a whole: its keys are not
 * in order, or it cannot be used without one of them. */
static bool put_service_keys(struct writer *w, struct dns_cursor *c)
{
	long last = -1;

	while (!c->bad && c->at < c->len) {
		uint32_t key = dns_cursor_int(c, 2), len = dns_cursor_int(c, 2);
		size_t at = c->at;

		dns_cursor_skip(c, len);
		if (c->bad || (long)key <= last)
			return false;
		last = (long)key;
		for (size_t i = 0; key == KEY_MANDATORY && i + 1 < len; i += 2)
			if (is_stripped_key(
				    (uint32_t)c->p[at + i] << 8 | (uint32_t)c->p[at + i + 1]))
				return false;
		if (is_stripped_key(key))
			continue;
		dns_put(w->out, key, 2);
		dns_put(w->out, len, 2);
		str_add(w->out, c->p + at, len);
	}
	return !c->bad;
}

/* The data of a record, its names written out or pointed at where readers expect that. */
static bool put_data(struct writer *w, const struct dns_answer *answer,
	const struct dns_record *record, unsigned strip)
{
	const struct dns_layout *layout = dns_layout_of(record->type);
	bool is_service = record->type == DNS_HTTPS || record->type == DNS_SVCB;
	size_t end = (size_t)record->data_at + record->data_len;
	struct dns_cursor c =
		dns_cursor_at((struct slice){.p = answer->message.p, .len = end}, record->data_at);
	struct dns_name name;

	for (const char *piece = layout->pieces; *piece; piece++) {
		size_t from = c.at;

		if (*piece == 'n') {
			(void)dns_name_read(&c, true, &name); /* was read before */
			put_name(w, &name, layout->compressed);
			continue;
		}
		if (*piece == '*' && is_service && strip & DNS_STRIP_ECH)
			return put_service_keys(w, &c);
		if (*piece == 's')
			dns_cursor_skip(&c, dns_cursor_int(&c, 1));
		else if (*piece == 'S' || *piece == '*')
			c.at = end;
		else
			dns_cursor_skip(&c, (size_t)(*piece - '0'));
		str_add(w->out, c.p + from, c.at - from);
	}
	return true;
}

/* The type a record is about: its own, or what it signs. */
static uint32_t type_about(const struct dns_answer *answer, const struct dns_record *record)
{
	struct dns_cursor c = dns_cursor_at(answer->message, record->data_at);

	return record->type == DNS_RRSIG && record->data_len >= 2 ? dns_cursor_int(&c, 2)
	                                                          : record->type;
}

static void put_record(struct writer *w, const struct dns_answer *answer,
	const struct dns_record *record, unsigned strip)
{
	struct dns_name owner = dns_name_get(answer->message, record->owner_at);
	uint32_t about = type_about(answer, record);
	size_t before = w->out->len, n_places = w->n_places, at;

	if (strip && (about == DNS_HTTPS || about == DNS_SVCB)) {
		/* What is changed is signed no more. */
		w->flags &= (uint16_t)~DNS_FLAG_AD;
		if (strip & DNS_STRIP_SERVICES || record->type == DNS_RRSIG)
			return;
	}
	at = put_record_head(w, &owner, record);
	if (put_data(w, answer, record, strip)) {
		put_length(w, at);
		w->count[record->is_authority ? 2 : 1]++;
	} else {
		w->out->len = before;
		w->n_places = n_places;
	}
}

void dns_reply_answer(struct str *out, const struct dns_query *query,
	const struct dns_answer *answer, unsigned strip, size_t max)
{
	size_t opt_len = query->has_edns ? 11 : 0, question_end;
	struct writer w;

	begin(&w, out, query);
	question_end = out->len;
	w.rcode = answer->rcode;
	if (answer->authentic && query->wants_authentic)
		w.flags |= DNS_FLAG_AD;
	for (size_t i = 0; i < answer->n_records; i++)
		put_record(&w, answer, &answer->records[i], strip);
	if (out->len - w.start + opt_len > max || answer->truncated) {
		out->len = question_end;
		w.count[1] = w.count[2] = 0;
		w.flags = DNS_FLAG_TC;
	}
	end(&w);
}
