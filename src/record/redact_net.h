/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in what went over the network: headers, bodies. */
#ifndef RECORD_REDACT_NET_H
#define RECORD_REDACT_NET_H

#include "record/redact_scan.h"

/* Headers as a JSON object of texts. False where there is no secret in them (out is untouched), else out gets
 * them without. What is no such object is kept as "[redacted]". */
bool redact_net_headers(const struct redact_scan_rules *rules, struct slice json, struct str *out);
/* A body, as text or (encoding "base64") the bytes behind that. */
bool redact_net_body(const struct redact_scan_rules *rules, struct slice body,
	struct slice encoding, struct str *out);

#endif
