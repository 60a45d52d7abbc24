/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is there or the program is not: running out of it ends the process with a message. */
#ifndef UTIL_MEM_H
#define UTIL_MEM_H

#include <stddef.h>

void *mem_zero(size_t n, size_t size);          /* n * size bytes of zeros; overflow aborts */
void *mem_grow(void *p, size_t n, size_t size); /* as realloc() to n * size bytes */
char *mem_dup(const char *s);                   /* as strdup(); NULL gives NULL */
void *mem_copy(const void *p, size_t len);      /* len bytes and a NUL behind them */
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* One zeroed object, or n of them. */
#define new0(type)      ((type *)mem_zero(1, sizeof(type)))
#define new0_n(type, n) ((type *)mem_zero((n), sizeof(type)))

#endif
