/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "proto/dns_name.h"
#include "proto/dns_wire.h"
#include "proto/url.h"

static const struct {
	uint16_t value;
	const char *name;
} types[] =
	{
		{DNS_A, "A"},
		{DNS_NS, "NS"},
		{DNS_CNAME, "CNAME"},
		{DNS_SOA, "SOA"},
		{10, "NULL"},
		{DNS_PTR, "PTR"},
		{13, "HINFO"},
		{DNS_MX, "MX"},
		{DNS_TXT, "TXT"},
		{DNS_AAAA, "AAAA"},
		{DNS_SRV, "SRV"},
		{35, "NAPTR"},
		{39, "DNAME"},
		{DNS_OPT, "OPT"},
		{43, "DS"},
		{44, "SSHFP"},
		{DNS_RRSIG, "RRSIG"},
		{DNS_NSEC, "NSEC"},
		{48, "DNSKEY"},
		{DNS_NSEC3, "NSEC3"},
		{52, "TLSA"},
		{DNS_SVCB, "SVCB"},
		{DNS_HTTPS, "HTTPS"},
		{99, "SPF"},
		{249, "TKEY"},
		{250, "TSIG"},
		{251, "IXFR"},
		{252, "AXFR"},
		{DNS_ANY, "ANY"},
		{257, "CAA"},
},
  rcodes[] = {
	  {DNS_NOERROR, "NOERROR"},
	  {DNS_FORMERR, "FORMERR"},
	  {DNS_SERVFAIL, "SERVFAIL"},
	  {DNS_NXDOMAIN, "NXDOMAIN"},
	  {DNS_NOTIMP, "NOTIMP"},
	  {DNS_REFUSED, "REFUSED"},
	  {DNS_BADVERS, "BADVERS"},
};

const char *dns_type_name(uint16_t type)
{
	static _Thread_local char other[16];

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].value == type)
			return types[i].name;
	snprintf(other, sizeof(other), "TYPE%u", type);
	return other;
}

const char *dns_rcode_name(enum dns_rcode rcode)
{
	static _Thread_local char other[16];

	for (size_t i = 0; i < sizeof(rcodes) / sizeof(rcodes[0]); i++)
		if (rcodes[i].value == rcode)
			return rcodes[i].name;
	snprintf(other, sizeof(other), "RCODE%u", (unsigned)rcode);
	return other;
}

void dns_head_read(struct dns_cursor *c, struct dns_head *ret)
{
	ret->id = (uint16_t)dns_cursor_int(c, 2);
	ret->flags = (uint16_t)dns_cursor_int(c, 2);
	for (size_t i = 0; i < DNS_SECTIONS; i++)
		ret->count[i] = (uint16_t)dns_cursor_int(c, 2);
}

int dns_opt_read(struct dns_cursor *c, struct dns_opt *ret)
{
	size_t len, end;

	ret->udp_size = (uint16_t)dns_cursor_int(c, 2);
	ret->rcode_high = (uint8_t)dns_cursor_int(c, 1);
	ret->version = (uint8_t)dns_cursor_int(c, 1);
	ret->dnssec_ok = dns_cursor_int(c, 2) & DNS_FLAG_DO;
	len = dns_cursor_int(c, 2);
	if (c->bad || len > c->len - c->at)
		return -EBADMSG;
	end = c->at + len;
	while (!c->bad && c->at < end) {
		dns_cursor_skip(c, 2);
		dns_cursor_skip(c, dns_cursor_int(c, 2));
	}
	return c->bad || c->at != end ? -EBADMSG : 0;
}

/* The one thing that may follow the question. */
static enum dns_rcode read_edns(struct dns_cursor *c, struct dns_query *query)
{
	struct dns_opt opt;

	if (dns_cursor_int(c, 1) != 0 || dns_cursor_int(c, 2) != DNS_OPT ||
		dns_opt_read(c, &opt) < 0)
		return DNS_FORMERR;
	query->has_edns = true;
	query->dnssec_ok = opt.dnssec_ok;
	if (opt.udp_size > DNS_UDP_MIN)
		query->udp_size = opt.udp_size;
	return opt.version > 0 ? DNS_BADVERS : DNS_NOERROR;
}

static enum dns_rcode read_question(
	struct dns_cursor *c, const struct dns_head *head, struct dns_query *query)
{
	struct dns_name name;
	enum dns_rcode fault = DNS_NOERROR;

	if (head->flags & DNS_FLAG_OPCODE)
		return DNS_NOTIMP;
	if (head->flags & DNS_FLAG_TC || head->count[0] != 1 || head->count[1] > 0 ||
		head->count[2] > 0 || head->count[3] > 1)
		return DNS_FORMERR;
	/* Before it there is nothing that a pointer could lead to. */
	if (dns_name_read(c, false, &name) < 0)
		return DNS_FORMERR;
	query->type = (uint16_t)dns_cursor_int(c, 2);
	query->class = (uint16_t)dns_cursor_int(c, 2);
	if (c->bad)
		return DNS_FORMERR;
	query->name = name;
	if (head->count[3])
		fault = read_edns(c, query);
	if (fault == DNS_NOERROR && c->at != c->len)
		fault = DNS_FORMERR;
	if (fault == DNS_NOERROR && query->class != DNS_CLASS_IN)
		fault = DNS_REFUSED;
	return fault;
}

/* And not a spelling of an address, which no name is. */
static bool is_name(const char *host)
{
	struct url_host read;

	return url_host_read(slice_of(host), &read) == 0 && read.kind == URL_NAME;
}

int dns_query_read(struct slice in, struct dns_query *ret)
{
	struct dns_cursor c = dns_cursor_at(in, 0);
	struct dns_head head;

	dns_head_read(&c, &head);
	if (c.bad || in.len > DNS_MESSAGE_MAX || head.flags & DNS_FLAG_QR)
		return -EBADMSG;
	*ret = (struct dns_query){.id = head.id,
		.opcode = (head.flags & DNS_FLAG_OPCODE) >> DNS_OPCODE_SHIFT,
		.udp_size = DNS_UDP_MIN,
		.recursion_desired = head.flags & DNS_FLAG_RD,
		.checking_disabled = head.flags & DNS_FLAG_CD,
		.wants_authentic = head.flags & DNS_FLAG_AD};
	ret->fault = read_question(&c, &head, ret);
	ret->wants_authentic = ret->wants_authentic || ret->dnssec_ok;
	if (ret->name.len > 0)
		ret->is_host = dns_name_text(&ret->name, ret->host) && is_name(ret->host);
	return 0;
}

void dns_query_write(struct str *out, const struct dns_query *query, uint16_t id, bool edns)
{
	struct dns_name name = query->name;

	dns_name_lower(&name);
	dns_put(out, id, 2);
	dns_put(out,
		DNS_FLAG_RD | (query->checking_disabled ? DNS_FLAG_CD : 0) |
			(query->wants_authentic ? DNS_FLAG_AD : 0),
		2);
	dns_put(out, 1, 2);
	dns_put(out, 0, 4);
	dns_put(out, edns, 2);
	str_add(out, name.wire, name.len);
	dns_put(out, query->type, 2);
	dns_put(out, query->class, 2);
	if (edns)
		dns_put_opt(out, query->dnssec_ok, DNS_NOERROR);
}
