/* SPDX-License-Identifier: Apache-2.0 */
/* What the sandbox uses, over time: `sandbox.stats` events.
 *
 * While something runs a timer ticks: each second at first, then at a three-hundredth of the time it has run for, at
 * most each minute; less often while nothing is used. So a day is some 2,700 samples. Each exec's end is one, too,
 * where the last is not a moment old, and so is the sandbox's. An idle sandbox has no timer. */
#ifndef SUPERVISOR_METERING_H
#define SUPERVISOR_METERING_H

#include "supervisor/supervisor_internal.h"

struct metering *metering_new(struct supervisor *sup);
void metering_free(struct metering *metering);
SCOPED_TYPE(metering)

/* An exec begins, or the sandbox was woken. */
void metering_start(struct supervisor *sup);
void metering_pause(struct supervisor *sup);
/* An exec's process was reaped; its row comes next. */
void metering_end_exec(struct supervisor *sup, const struct sandbox_exit *exit);
/* All has ended: what was used since the last sample. */
void metering_finish(struct supervisor *sup);

/* Samples at which the disk limit was reached: one more than before says that it was meanwhile. */
int64_t metering_times_full(const struct supervisor *sup);
/* Of a flow that ended. */
void metering_add_network(struct supervisor *sup, int64_t bytes_out, int64_t bytes_in);
/* All that the gateway passed, in one direction; and that it ended. */
void metering_count_network(struct supervisor *sup, bool is_out, uint64_t bytes);
void metering_end_gateway(struct supervisor *sup);

/* Sets a field of an event where the figure is known. */
#define METERING_SET(ev, name, value) \
	do { \
		int64_t value_ = (value); \
		if (value_ != GAUGE_UNKNOWN) \
			event_set(ev, name, value_); \
	} while (0)

static inline int64_t metering_cpu_ms(const struct gauge_group *group)
{
	return group->cpu_us == GAUGE_UNKNOWN ? GAUGE_UNKNOWN : group->cpu_us / 1000;
}

/* ---- when the next sample is due: pure ---- */

/* ran_ns: since something began to run; n_quiet: samples in a row in which nothing was used. */
int64_t metering_interval_ms(int64_t ran_ns, unsigned n_quiet);

#endif
