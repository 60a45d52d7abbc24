/* SPDX-License-Identifier: Apache-2.0 */
/* Which record is meant, and which there are. Every sandbox has a record from its creation on, so ids of
 * living sandboxes are found here too. */
#ifndef CLI_RECORDS_H
#define CLI_RECORDS_H

#include "cli/cli.h"
#include "record/reader.h"
#include "util/err.h"
#include "util/id.h"

/* An id, a prefix of it that only one has (with or without "sb_"), or "last": the caller's newest. -ENOENT,
 * or -ENOTUNIQ, with a sentence. */
int records_resolve(const struct cli *cli, const char *text, char ret_id[ID_SIZE], struct err *err);

/* Opens one for reading. -EACCES, with a sentence, where it belongs to another user. */
int records_open(
	const struct cli *cli, const char *id, struct reader **ret_reader, struct err *err);
void records_dir(const struct cli *cli, const char *id, struct str *out);

struct record_entry {
	char id[ID_SIZE];
	uid_t owner;
};
struct record_list {
	struct record_entry *items;
	size_t n;
};
/* All of them, oldest first; none is fine. */
int records_list(const struct cli *cli, struct record_list *ret_list, struct err *err);
void records_list_done(struct record_list *list);
/* Whether its files may be read by the caller: root reads all. */
bool records_may_read(const struct cli *cli, const struct record_entry *entry);

#endif
