/* SPDX-License-Identifier: Apache-2.0 */
/* cloche-files: one operation on the sandbox's files, asked for from outside, done inside with the rights of root there.
 * The supervisor starts it as it starts a command; what it reads and says is in proto/files_wire.h. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "files/ops.h"
#include "files/outcome.h"
#include "util/fdio.h"
#include "util/mem.h"

#define MEMORY_MAX (512u << 20) /* an expression may ask for any amount */
#define TIME_S     15
#define TRANSFER_S 3600 /* as slow as its reader */

static const struct {
	void (*run)(const struct files_wire_request *request);
	int time_s;
} ops[] = {
	[FILES_WIRE_CREATE] = {ops_create, TIME_S},
	[FILES_WIRE_VIEW] = {ops_view, TIME_S},
	[FILES_WIRE_REPLACE] = {ops_replace, TIME_S},
	[FILES_WIRE_LS] = {ops_ls, TIME_S},
	[FILES_WIRE_GLOB] = {ops_glob, TIME_S},
	[FILES_WIRE_GREP] = {ops_grep, TIME_S},
	[FILES_WIRE_UPLOAD] = {ops_create, TRANSFER_S},
	[FILES_WIRE_DOWNLOAD] = {ops_download, TRANSFER_S},
};

static void read_or_fail(char *to, size_t len)
{
	if (fdio_read_full(0, to, len) != (ssize_t)len)
		outcome_fail(FILES_WIRE_FAILED, "what is asked for was cut off");
}

int main(void)
{
	struct rlimit memory = {.rlim_cur = MEMORY_MAX, .rlim_max = MEMORY_MAX};
	struct files_wire_request request;
	char start[FILES_WIRE_START], *head;
	long len;

	(void)prctl(PR_SET_NAME,
		"cloche-files"); /* started by a descriptor, it has a number for a name */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)setrlimit(RLIMIT_AS, &memory); /* without it the sandbox's own limit remains */
	read_or_fail(start, sizeof(start));
	len = files_wire_head_len(start);
	if (len < 0)
		outcome_fail(FILES_WIRE_FAILED, "what is asked for cannot be read");
	head = mem_zero(1, (size_t)len + 1);
	read_or_fail(head, (size_t)len);
	if (files_wire_read((struct slice){.p = head, .len = (size_t)len}, &request) < 0)
		outcome_fail(FILES_WIRE_FAILED, "what is asked for cannot be read");
	outcome_set_deadline(ops[request.op].time_s);
	ops[request.op].run(&request);
	return FILES_WIRE_OK;
}
