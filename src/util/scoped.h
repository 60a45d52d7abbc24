/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that let go of what they hold when their block ends. */
#ifndef UTIL_SCOPED_H
#define UTIL_SCOPED_H

#include <stdlib.h>

void scoped_close(int *fd); /* closes an open *fd; keeps errno */

static inline void scoped_free(void *pp)
{
	free(*(void **)pp);
}

#define scoped(type) __attribute__((cleanup(type##_scoped)))
#define scoped_fd    __attribute__((cleanup(scoped_close)))
#define scoped_mem   __attribute__((cleanup(scoped_free)))

/* In the header of a heap type: gives it scoped(type). */
#define SCOPED_TYPE(type) \
	static inline void type##_scoped(struct type **p) \
	{ \
		type##_free(*p); \
	}

/* Moves a value out of a scoped variable, which then holds nothing. */
#define take(pp) \
	({ \
		__typeof__(*(pp)) v_ = *(pp); \
		*(pp) = NULL; \
		v_; \
	})

static inline int take_fd(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}

#endif
