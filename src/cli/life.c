/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/life.h"

#include "cli/records.h"
#include "cli/session.h"

static int ask(const struct cli *cli, const char *request, const char *name, struct err *err)
{
	struct session session;
	char id[ID_SIZE];
	int r = records_resolve(cli, name, id, err);

	if (r < 0)
		return r;
	r = session_connect(&session, cli, id, err);
	if (r < 0)
		return r;
	r = session_ask(&session, request, slice_of(""), NULL, err);
	session_done(&session);
	return r;
}

int life_ask_all(
	const struct cli *cli, const char *request, char **ids, size_t n_ids, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_ids; i++)
		r = ask(cli, request, ids[i], err);
	return r;
}
