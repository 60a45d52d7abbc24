/* SPDX-License-Identifier: Apache-2.0 */
/* rm: ends a sandbox; its record only when asked for by name. */
#include <errno.h>

#include "cli/records.h"
#include "cli/verb_options.h"
#include "remote/remote_life.h"
#include "remote/remote_verbs.h"
#include "remote/request.h"
#include "util/mem.h"

static int remove_record(const struct cli *cli, const char *id, struct err *err)
{
	scoped_mem char *path = mem_printf("/v1/records/%s", id);

	return request_json(
		link_of(cli), &(struct ask){.method = "DELETE", .path = path}, NULL, err);
}

static int discard(const struct cli *cli, const char *id, struct err *err)
{
	return remote_life_ask(cli,
		&(struct remote_life_ask){.method = "POST", .id = id, .act = "discard"}, NULL, err);
}

static int tell(const struct cli *cli, const struct rm_options *o, const char *id, struct err *err)
{
	scoped_str struct str out = {0};

	if (cli->json || cli->jsonl || cli->quiet)
		return 0;
	str_printf(&out, "%s: removed the sandbox%s%s\n", id, o->changes ? ", its changes" : "",
		o->record ? ", its record" : "; its record stays");
	return cli_print(&out, err);
}

static int remove_one(
	const struct cli *cli, const struct rm_options *o, const char *name, struct err *err)
{
	char id[ID_SIZE];
	int r = records_resolve(cli, name, id, err);

	if (r == 0)
		r = remote_life_ask(
			cli, &(struct remote_life_ask){.method = "DELETE", .id = id}, NULL, err);
	if (r == 0 && o->changes && !o->record)
		r = discard(cli, id, err);
	if (r == 0 && o->record)
		r = remove_record(cli, id, err);
	return r < 0 ? r : tell(cli, o, id, err);
}

int remote_rm(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct rm_options *o = options;
	int r = 0;

	if (o->bodies && !o->record)
		return remote_verbs_refuse(&verb_rm, "--bodies not with a server",
			"run it on the server's host, or remove the whole record by --record");
	if (o->is_aged)
		return remote_verbs_refuse(&verb_rm, "--aged-out not with a server",
			"its own retention removes what is too old");
	for (size_t i = 0; r == 0 && i < n_args; i++)
		r = remove_one(cli, o, args[i], err);
	return r;
}
