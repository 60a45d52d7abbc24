/* SPDX-License-Identifier: Apache-2.0 */
/* A warning about what is tried again and again, such as a database that is away: said at most once a minute. */
#ifndef SERVER_COMPLAINT_H
#define SERVER_COMPLAINT_H

#include <stdatomic.h>
#include <stdint.h>

struct complaint { /* all zero at first; of any thread */
	_Atomic int64_t next_ns;
	atomic_uint n_unsaid;
};

void complaint_warn(struct complaint *complaint, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* It is over: the next one is news. */
void complaint_end(struct complaint *complaint);

#endif
