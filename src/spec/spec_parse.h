/* SPDX-License-Identifier: Apache-2.0 */
/* The words people write in options and spec files: sizes, CPUs, mounts, pairs, names of choices.
 * All return 0, or -EINVAL (or what the system said) with one sentence that shows the text. */
#ifndef SPEC_SPEC_PARSE_H
#define SPEC_SPEC_PARSE_H

#include "spec/spec.h"

/* "512M", "1.5G", "4096": bytes; K, M, G and T are powers of 1024, "MB" and "MiB" mean the same. */
int spec_parse_size(const char *text, int64_t *ret_bytes, struct err *err);
/* "1.5", "0.25": thousandths of a CPU, at least 10. */
int spec_parse_cpus(const char *text, int64_t *ret_milli, struct err *err);
/* "30s", "5m", "250ms": at least one millisecond. */
int spec_parse_duration(const char *text, int64_t *ret_ms, struct err *err);
int spec_parse_count(
	const char *text, int64_t *ret_count, struct err *err); /* a whole number from 1 */
/* HOST:GUEST:ro|rw|cow. HOST may be relative; its links are resolved, so it must exist; unless it is another host's: then
 * it is absolute and stays as it is. Added to spec. */
int spec_parse_mount(const char *text, bool is_here, struct spec *spec, struct err *err);
/* KEY=VALUE with a key; UTF-8. The pair is the caller's. */
int spec_parse_pair(const char *text, struct spec_pair *ret_pair, struct err *err);
/* "processes,files,outputs", "all" or "none". */
int spec_parse_sources(const char *text, unsigned *ret_trace, struct err *err);
int spec_parse_on_loss(const char *text, enum spec_on_loss *ret_on_loss, struct err *err);
int spec_parse_mode(const char *text, enum spec_mount_mode *ret_mode, struct err *err);
int spec_parse_durability(const char *text, bool *ret_durable, struct err *err);

#endif
