/* SPDX-License-Identifier: Apache-2.0 */
#include "server/complaint.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/clock.h"
#include "util/err.h"
#include "util/log.h"

#define EVERY_NS (60 * CLOCK_NS_PER_S)

void complaint_warn(struct complaint *complaint, const char *fmt, ...)
{
	int64_t now = clock_mono_ns(), next = atomic_load(&complaint->next_ns);
	char text[ERR_MAX + 128];
	unsigned n;
	va_list args;

	if (now < next ||
		!atomic_compare_exchange_strong(&complaint->next_ns, &next, now + EVERY_NS)) {
		atomic_fetch_add(&complaint->n_unsaid, 1);
		return;
	}
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	n = atomic_exchange(&complaint->n_unsaid, 0);
	if (n > 0)
		log_warn("%s (and %u times more in the last minute)", text, n);
	else
		log_warn("%s", text);
}

void complaint_end(struct complaint *complaint)
{
	atomic_store(&complaint->next_ns, 0);
	atomic_store(&complaint->n_unsaid, 0);
}
