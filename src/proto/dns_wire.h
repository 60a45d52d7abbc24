/* SPDX-License-Identifier: Apache-2.0 */
/* The parts every DNS message has. For the other files of dns. */
#ifndef PROTO_DNS_WIRE_H
#define PROTO_DNS_WIRE_H

#include "proto/dns_name.h"

#define DNS_HEAD         12
#define DNS_SECTIONS     4 /* question, answer, authority, additional */
#define DNS_FLAG_QR      0x8000u
#define DNS_FLAG_OPCODE  0x7800u
#define DNS_OPCODE_SHIFT 11
#define DNS_FLAG_TC      0x0200u
#define DNS_FLAG_RD      0x0100u
#define DNS_FLAG_RA      0x0080u
#define DNS_FLAG_AD      0x0020u
#define DNS_FLAG_CD      0x0010u
#define DNS_FLAG_RCODE   0x000fu
#define DNS_FLAG_DO      0x8000u /* of EDNS */

struct dns_head {
	uint16_t id, flags, count[DNS_SECTIONS];
};
void dns_head_read(struct dns_cursor *c, struct dns_head *ret); /* sets c->bad where it is short */

struct dns_opt {
	uint16_t udp_size;
	uint8_t rcode_high, version;
	bool dnssec_ok;
};
/* Reads an OPT record from behind its type. -EBADMSG. */
int dns_opt_read(struct dns_cursor *c, struct dns_opt *ret);

void dns_put(struct str *out, uint32_t v, size_t bytes); /* as dns_cursor_int() reads it */
void dns_put_opt(struct str *out, bool dnssec_ok, enum dns_rcode rcode);

#endif
