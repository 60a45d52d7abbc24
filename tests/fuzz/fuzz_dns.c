/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte picks what the rest is: a query, or an answer to a query of some type. What is written from either
 * can be read again and says the same. */
#include <assert.h>
#include <stdint.h>

#include "proto/dns.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static const uint16_t types[] = {DNS_A, DNS_AAAA, DNS_HTTPS, DNS_ANY, DNS_MX, DNS_CNAME};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_texts(struct str *out, const struct dns_answer *answer)
{
	for (size_t i = 0; i < answer->n_records; i++) {
		dns_record_text(answer, &answer->records[i], out);
		str_putc(out, '\n');
	}
}

static void check_query(struct slice in)
{
	static const uint8_t address[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};
	static struct dns_query query, again;
	static struct dns_answer answer;
	struct str out = {0};

	if (dns_query_read(in, &query) < 0)
		return;
	dns_reply_empty(&out, &query, query.fault);
	str_reset(&out);
	if (query.fault == DNS_NOERROR) {
		dns_query_write(&out, &query, 7, true);
		assert(dns_query_read(str_slice(&out), &again) == 0);
		assert(again.fault == DNS_NOERROR && again.id == 7 && again.type == query.type);
		assert(strcmp(again.host, query.host) == 0 && again.is_host == query.is_host);
		str_reset(&out);
		dns_reply_address(&out, &query, address, 60);
		assert(dns_answer_read(str_slice(&out), &query, query.id, &answer) == 0);
		assert(answer.n_records == (query.type == DNS_A || query.type == DNS_ANY));
	}
	str_done(&out);
}

static void check_answer(struct slice in, uint16_t type, unsigned strip)
{
	static const char question[] = "\x12\x34\1\0\0\1\0\0\0\0\0\1\3www\7Example\3org\0\0\1\0\1"
				       "\0\0\x29\4\xd0\0\0\x80\0\0\0";
	static struct dns_query query;
	static struct dns_answer answer, again;
	struct str out = {0}, said = {0}, repeated = {0};
	uint8_t address[16];

	assert(dns_query_read((struct slice){question, sizeof(question) - 1}, &query) == 0);
	query.type = type;
	if (dns_answer_read(in, &query, query.id, &answer) < 0)
		return;
	for (size_t i = 0; i < answer.n_records; i++)
		(void)dns_record_address(&answer, &answer.records[i], address);
	add_texts(&said, &answer);
	dns_reply_answer(&out, &query, &answer, strip, DNS_MESSAGE_MAX);
	assert(out.len <= DNS_MESSAGE_MAX);
	assert(dns_answer_read(str_slice(&out), &query, query.id, &again) == 0);
	assert(again.rcode == answer.rcode && again.n_dropped == 0);
	add_texts(&repeated, &again);
	if (!strip && !again.truncated)
		assert(slice_eq(str_slice(&said), str_slice(&repeated)));
	str_reset(&out);
	dns_reply_answer(&out, &query, &answer, strip, DNS_UDP_MIN);
	assert(out.len <= DNS_UDP_MIN);
	str_done(&out);
	str_done(&said);
	str_done(&repeated);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice in = {(const char *)data + 1, size - 1};

	if (size == 0)
		return 0;
	if (*data == 'q')
		check_query(in);
	else
		check_answer(in, types[*data % N(types)], *data / N(types) % 4);
	return 0;
}
