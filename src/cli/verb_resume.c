/* SPDX-License-Identifier: Apache-2.0 */
/* cloche resume: a suspended sandbox runs again, with its id, its files and its record. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "cli/at_rest.h"
#include "cli/secret_values.h"
#include "cli/session.h"
#include "cli/verb.h"
#include "spec/spec_network_parse.h"
#include "spec/spec_parse.h"
#include "util/mem.h"

/* What is traced may be chosen anew, secrets have to be given again; the rest is as it was. */
struct resume_options {
	unsigned trace;
	bool has_trace, has_on_loss;
	enum spec_on_loss on_loss;
	int64_t buffer_bytes; /* 0: as it was */
	struct spec_words secret_files;
	const char *hidden;        /* borrowed */
	struct spec_network proxy; /* the upstream proxy alone */
};

static int set_trace(void *base, const char *value, struct err *err)
{
	struct resume_options *o = base;

	o->trace = SPEC_TRACE_ALL;
	o->has_trace = true;
	return 0;
}

static int set_no_trace(void *base, const char *value, struct err *err)
{
	struct resume_options *o = base;

	o->trace = 0;
	o->has_trace = true;
	return 0;
}

static int set_sources(void *base, const char *value, struct err *err)
{
	struct resume_options *o = base;

	o->has_trace = true;
	return spec_parse_sources(value, &o->trace, err);
}

static int set_on_loss(void *base, const char *value, struct err *err)
{
	struct resume_options *o = base;

	o->has_on_loss = true;
	return spec_parse_on_loss(value, &o->on_loss, err);
}

static int set_secret_file(void *base, const char *value, struct err *err)
{
	struct resume_options *o = base;

	return secret_values_add_file(&o->secret_files, value, err);
}

static int set_proxy(void *base, const char *value, struct err *err)
{
	struct resume_options *o = base;

	return spec_network_parse_proxy(value, &o->proxy, err);
}

static const struct option trace_table[] = {
	{"trace", 0, NULL, "watch programs, files, mounts, outputs and network from now on",
		OPTION_CALL, .set = set_trace},
	{"no-trace", 0, NULL, "keep the exec log only", OPTION_CALL, .set = set_no_trace},
	{"trace-sources", 0, "LIST", "watch only these: processes,files,outputs,network,mounts",
		OPTION_CALL, .set = set_sources},
	{"buffer", 0, "SIZE", "what the observer may hold", OPTION_SIZE,
		offsetof(struct resume_options, buffer_bytes)},
	{"on-loss", 0, "WHAT",
		"when events come faster than they are kept: freeze, stop or continue", OPTION_CALL,
		.set = set_on_loss},
	{NULL},
};

static const struct option network_table[] = {
	{"secret-file", 0, "NAME=FILE",
		"the value of a secret is in this file, not in the environment", OPTION_CALL,
		.set = set_secret_file},
	{"hidden", 0, "FILE",
		"all of them and the proxy's credentials are in this JSON file (docs/server.md), "
		"and the environment is not asked",
		OPTION_TEXT, offsetof(struct resume_options, hidden)},
	{"upstream-proxy", 0, "URL",
		"the proxy, where it wants a password: that was not kept either", OPTION_CALL,
		.set = set_proxy},
	{NULL},
};

static const struct option_group groups[] = {
	{"Trace (without one of these: as before)", trace_table},
	{"Network", network_table},
	{NULL},
};

static void init(void *options)
{
	struct resume_options *o = options;

	spec_network_init(&o->proxy);
}

static void done(void *options)
{
	struct resume_options *o = options;

	spec_words_done(&o->secret_files);
	spec_network_done(&o->proxy);
}

static void merge_trace(const struct resume_options *o, struct spec *spec)
{
	if (o->has_trace)
		spec->trace = o->trace;
	if (o->has_on_loss)
		spec->on_loss = o->on_loss;
	if (o->buffer_bytes)
		spec->buffer_bytes = o->buffer_bytes;
}

static int merge(
	struct resume_options *o, const struct cli *cli, struct spec *spec, struct err *err)
{
	struct spec_network *net = &spec->network;
	int r;

	merge_trace(o, spec);
	if (o->proxy.upstream_proxy) {
		free(net->upstream_proxy);
		net->upstream_proxy = take(&o->proxy.upstream_proxy);
		net->proxy_user = take(&o->proxy.proxy_user);
		net->proxy_password = take(&o->proxy.proxy_password);
	}
	r = secret_values_again(
		net, &(struct secret_sources){.files = &o->secret_files, .hidden = o->hidden}, err);
	return r < 0 ? r : spec_check(spec, cli->state_dir, cli->run_dir, err);
}

static int go_on(const struct cli *cli, struct at_rest *at, struct err *err)
{
	struct session session;
	int r = session_start_again(&session, cli, at->id, at->lock_fd, at->rest->spec, err);

	spec_hidden_forget(&at->rest->spec->network);
	if (r < 0)
		return r;
	r = session_keep(&session, err);
	session_done(&session);
	return r;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct at_rest at;
	int r = at_rest_open(cli, args[0], &at, err);

	if (r >= 0 && at.rest->is_over)
		r = err_set(err, -EINVAL,
			"sandbox %s has ended: only its files are kept, `cloche fork %s` makes a "
			"new one of them",
			at.id, at.id);
	if (r >= 0)
		r = merge(options, cli, at.rest->spec, err);
	if (r >= 0)
		r = go_on(cli, &at, err);
	at_rest_done(&at);
	return r < 0 ? r : 0;
}

const struct verb verb_resume = {
	.name = "resume",
	.class = VERB_RUN,
	.usage = "ID",
	.help = "let a suspended sandbox run again, with its files, its rules and its record",
	.text = "Secrets are given again, as at its creation: in the environment or by "
		"--secret-file.",
	.groups = groups,
	.options_size = sizeof(struct resume_options),
	.init = init,
	.done = done,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
