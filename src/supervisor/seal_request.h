/* SPDX-License-Identifier: Apache-2.0 */
/* One head, signed: asks whoever holds the host key and keeps the answer in the record. */
#ifndef SUPERVISOR_SEAL_REQUEST_H
#define SUPERVISOR_SEAL_REQUEST_H

#include "record/record.h"

/* Sends the head to be signed, without waiting. *ret_head is what the answer will be about. */
int seal_request_send(int sock, struct record *record, const char *id, enum record_end end,
	struct record_head *ret_head);
/* Reads the answer (waits for it) and keeps the seal. */
int seal_request_keep(int sock, struct record *record, const struct record_head *head);
/* Both, with a deadline of seconds. -ENOTCONN where there is no signer. */
int seal_request(int sock, struct record *record, const char *id, enum record_end end);

#endif
