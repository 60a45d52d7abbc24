/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/budget.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/mem.h"

#define LOOK_NS      (10 * CLOCK_NS_PER_MS)
#define GIVE_BACK_NS (200 * CLOCK_NS_PER_MS) /* it goes through all memory */

struct budget {
	int fd;
	size_t page, used;
	int64_t looked_ns, gave_ns;
};

int budget_open(const char *path, struct budget **ret_budget, struct err *err)
{
	scoped(budget) struct budget *budget = new0(struct budget);

	budget->page = (size_t)sysconf(_SC_PAGESIZE);
	budget->looked_ns = budget->gave_ns = INT64_MIN / 2;
	budget->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (budget->fd < 0)
		return err_set(err, -errno, "open '%s': %m", path);
	*ret_budget = take(&budget);
	return 0;
}

void budget_free(struct budget *budget)
{
	if (!budget)
		return;
	if (budget->fd >= 0)
		close(budget->fd);
	free(budget);
}

/* Pages in memory, without those of files that others have as well. What was seen last stays, should it be unreadable. */
static void look(struct budget *budget, int64_t now_ns)
{
	unsigned long size, resident, shared;
	char text[128];
	ssize_t n = pread(budget->fd, text, sizeof(text) - 1, 0);

	budget->looked_ns = now_ns;
	if (n <= 0)
		return;
	text[n] = '\0';
	if (sscanf(text, "%lu %lu %lu", &size, &resident, &shared) == 3 && resident >= shared)
		budget->used = (resident - shared) * budget->page;
}

void budget_give_back(struct budget *budget, int64_t now_ns)
{
	budget->gave_ns = now_ns;
	(void)malloc_trim(0); /* whether there was something shows in the look */
	look(budget, now_ns);
}

enum budget_level budget_level(const struct budget *budget)
{
	return budget->used > BUDGET_MAX    ? BUDGET_OVER
	       : budget->used > BUDGET_FULL ? BUDGET_FULL_UP
	                                    : BUDGET_ROOM;
}

enum budget_level budget_look(struct budget *budget, int64_t now_ns)
{
	if (now_ns - budget->looked_ns >= LOOK_NS)
		look(budget, now_ns);
	if (budget_level(budget) != BUDGET_ROOM && now_ns - budget->gave_ns >= GIVE_BACK_NS)
		budget_give_back(budget, now_ns);
	return budget_level(budget);
}

size_t budget_excess(const struct budget *budget)
{
	return budget->used > BUDGET_FULL ? budget->used - BUDGET_FULL : 0;
}
