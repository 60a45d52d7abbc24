/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/apply_park.h"

#include <string.h>
#include <sys/stat.h>

#include "util/mem.h"

int apply_journal_rename(struct journal *journal, int n, struct host_folder *host, const char *from,
	const char *to, bool is_parked)
{
	struct rename rename = {.from = (char *)from, .to = (char *)to, .is_parked = is_parked};
	struct stat st;
	int r = host_folder_stat(host, from, &st);

	if (r < 0)
		return r;
	rename.inode = st.st_ino;
	r = journal_add_rename(journal, n, &rename);
	if (r == 0)
		r = journal_sync(journal);
	if (r == 0)
		r = host_folder_rename(host, from, to);
	if (r < 0)
		journal_drop_rename(journal, n);
	return r;
}

/* Where a path of before belongs now: in its folder, wherever that is. NULL where another folder has that one's place. */
static char *find_place(const struct journal *journal, int n, const char *before)
{
	const char *slash = strrchr(before, '/');
	scoped_mem char *folder = slash ? mem_copy(before, (size_t)(slash - before)) : NULL;
	scoped_mem char *now = folder ? journal_now(journal, n, folder) : NULL;
	scoped_mem char *was = now ? journal_before(journal, n, now) : NULL;

	if (!was)
		return mem_dup(before);
	return strcmp(was, folder) == 0 ? mem_printf("%s%s", now, slash) : NULL;
}

void apply_park_back(struct journal *journal, int n, struct host_folder *host)
{
	const char *parked;

	for (size_t i = 0; (parked = journal_next_parked(journal, n, &i));) {
		scoped_mem char *from = mem_dup(parked);
		scoped_mem char *before = journal_before(journal, n, from);
		scoped_mem char *to = find_place(journal, n, before);

		if (to) /* else it waits for the next apply */
			(void)apply_journal_rename(journal, n, host, from, to, false);
	}
}
