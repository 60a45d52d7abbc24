/* SPDX-License-Identifier: Apache-2.0 */
/* What programs and execs did that their commands are told by: files written, hosts, heads of outputs. */
#ifndef VIEW_COMMAND_WORK_H
#define VIEW_COMMAND_WORK_H

#include "event/event.h"
#include "util/scoped.h"
#include "util/str.h"

/* What an owner is told by: each once, in order. */
enum command_work_list {
	COMMAND_WORK_FILES,         /* paths written */
	COMMAND_WORK_HOSTS,         /* names or addresses that it tried to reach */
	COMMAND_WORK_HOSTS_REFUSED, /* those of them that were refused */
	COMMAND_WORK_N_LISTS,
};
struct command_texts {
	struct slice *items;
	size_t n, cap;
	bool is_cut;
};

/* Output that one program wrote in a row. */
struct command_chunk {
	size_t node;
	int stream; /* 0 stdout, 1 stderr */
	int64_t file, written;
	struct str data;
};

struct command_work;

struct command_work *command_work_new(void);
void command_work_free(struct command_work *work);
SCOPED_TYPE(command_work)

/* The path that an event says something was written to, or an empty slice. */
struct slice command_work_written(const struct event *ev);

void command_work_add(struct command_work *work, enum command_work_list list, struct slice owner,
	struct slice text);
const struct command_texts *command_work_texts(const struct command_work *work,
	enum command_work_list list, struct slice owner); /* NULL: none */
void command_work_add_output(struct command_work *work, size_t node, const struct event *ev);
size_t command_work_n_chunks(const struct command_work *work);
const struct command_chunk *command_work_chunk(const struct command_work *work, size_t i);
bool command_work_is_full(
	const struct command_work *work); /* some output found no place: no stream is whole */

#endif
