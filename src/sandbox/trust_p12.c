/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 7292: a PFX holds an octet string, that a sequence of safes, and nothing follows where there is no password.
 * So all that is there ends at the end of the file, and a safe of our own goes behind it once the lengths in front
 * are made anew. What marks a certificate as trusted is Oracle's own attribute. */
#include "sandbox/trust_p12.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/over.h"
#include "util/der.h"
#include "util/fdio.h"

#define HEAD_MAX    64 /* bytes of the file that the lengths are in */

#define BYTES(text) ((struct slice){.p = (text), .len = sizeof(text) - 1})
static const struct slice version_3 = BYTES("\x02\x01\x03"),
			  data_type = BYTES("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01"),
			  certificate_bag =
				  BYTES("\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03"),
			  x509_type = BYTES("\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01"),
			  /* Trusted for any use. */
	trusted = BYTES(
		"\x30\x16\x06\x0c\x60\x86\x48\x01\x86\xf9\x66\xad\xca\x7b\x01\x01\x31\x06\x06\x04"
		"\x55\x1d\x25\x00"),
			  friendly_name = BYTES("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x09\x14"),
			  alias = BYTES("\0c\0l\0o\0c\0h\0e\0-\0s\0a\0n\0d\0b\0o\0x");

struct head {
	unsigned char bytes[HEAD_MAX];
	size_t at;
	uint64_t size; /* of the file */
};

/* An element that reaches to the end of the file. */
static bool enter(struct head *head, enum der_tag tag)
{
	const unsigned char *p = head->bytes + head->at;
	size_t more, len = 0;

	if (head->at + 5 > HEAD_MAX || p[0] != tag)
		return false;
	more = p[1] < 0x80 ? 0 : p[1] & 0x7fU;
	if (more > 3 || p[1] == 0x80)
		return false;
	for (size_t i = 0; i < more; i++)
		len = len << 8 | p[2 + i];
	if (more == 0)
		len = p[1];
	head->at += 2 + more;
	return head->at + len == head->size;
}

static bool pass(struct head *head, struct slice element)
{
	if (head->at + element.len > HEAD_MAX ||
		memcmp(head->bytes + head->at, element.p, element.len) != 0)
		return false;
	head->at += element.len;
	return true;
}

/* A safe with the certificate in it. */
static void put_safe(struct str *out, struct slice der)
{
	scoped_str struct str in = {0}, around = {0}, bag = {0};

	der_put(&in, DER_BYTES, der);
	str_add(&around, x509_type.p, x509_type.len);
	der_wrap(&around, DER_CHOICE_0, &in);
	der_wrap(&in, DER_SEQUENCE, &around);
	str_add(&bag, certificate_bag.p, certificate_bag.len);
	der_wrap(&bag, DER_CHOICE_0, &in);

	der_put(&in, DER_UTF16, alias);
	str_add(&around, friendly_name.p, friendly_name.len);
	der_wrap(&around, DER_SET, &in);
	str_add(&in, trusted.p, trusted.len);
	der_wrap(&in, DER_SEQUENCE, &around);
	der_wrap(&bag, DER_SET, &in);

	der_wrap(&in, DER_SEQUENCE, &bag);
	der_wrap(&around, DER_SEQUENCE, &in);
	der_wrap(&in, DER_BYTES, &around);
	str_add(&around, data_type.p, data_type.len);
	der_wrap(&around, DER_CHOICE_0, &in);
	der_wrap(out, DER_SEQUENCE, &around);
}

/* What stands before the safes, now that they are so many bytes. */
static void put_head(struct str *out, size_t safes)
{
	size_t list = der_head_len(safes) + safes, text = der_head_len(list) + list,
	       content = data_type.len + der_head_len(text) + text;

	der_head(out, DER_SEQUENCE, version_3.len + der_head_len(content) + content);
	str_add(out, version_3.p, version_3.len);
	der_head(out, DER_SEQUENCE, content);
	str_add(out, data_type.p, data_type.len);
	der_head(out, DER_CHOICE_0, text);
	der_head(out, DER_BYTES, list);
	der_head(out, DER_SEQUENCE, safes);
}

int trust_p12_copy(int from_fd, uint64_t size, struct slice der, int to_fd)
{
	struct head head = {.size = size};
	scoped_str struct str front = {0}, safe = {0};
	int r;

	if (pread(from_fd, head.bytes, sizeof(head.bytes), 0) != (ssize_t)sizeof(head.bytes) ||
		size > DER_LEN_MAX / 2 || !enter(&head, DER_SEQUENCE) || !pass(&head, version_3) ||
		!enter(&head, DER_SEQUENCE) || !pass(&head, data_type) ||
		!enter(&head, DER_CHOICE_0) || !enter(&head, DER_BYTES) ||
		!enter(&head, DER_SEQUENCE))
		return -EINVAL;
	put_safe(&safe, der);
	put_head(&front, (size_t)(size - head.at) + safe.len);
	r = fdio_write_all(to_fd, front.p, front.len);
	if (r == 0)
		r = over_copy(from_fd, head.at, size, to_fd, NULL, NULL);
	return r < 0 ? r : fdio_write_all(to_fd, safe.p, safe.len);
}
