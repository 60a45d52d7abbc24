/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/seal_request.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <sys/socket.h>

#define ANSWER_MS   5000
#define ANSWER_SIZE 1024

int seal_request_send(int sock, struct record *record, const char *id, enum record_end end,
	struct record_head *ret_head)
{
	scoped_str struct str text = {0};

	record_get_head(record, end, ret_head);
	record_head_text(ret_head, id, &text);
	return send(sock, text.p, text.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static const char *member(const json_t *answer, const char *key)
{
	return json_string_value(json_object_get(answer, key));
}

int seal_request_keep(int sock, struct record *record, const struct record_head *head)
{
	char answer[ANSWER_SIZE];
	ssize_t n = recv(sock, answer, sizeof(answer), 0);
	json_t *json = n > 0 ? json_loadb(answer, (size_t)n, 0, NULL) : NULL;
	int r = n > 0 ? -EKEYREJECTED : -EPIPE;

	if (member(json, "signature") && member(json, "key") && member(json, "fingerprint"))
		r = record_put_seal(record, head, member(json, "signature"),
			member(json, "fingerprint"), member(json, "key"));
	json_decref(json);
	return r;
}

int seal_request(int sock, struct record *record, const char *id, enum record_end end)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	struct record_head head;
	int r;

	if (sock < 0)
		return -ENOTCONN;
	r = seal_request_send(sock, record, id, end, &head);
	if (r < 0)
		return r;
	if (poll(&p, 1, ANSWER_MS) != 1)
		return -ETIMEDOUT;
	return seal_request_keep(sock, record, &head);
}
