/* SPDX-License-Identifier: Apache-2.0 */
/* cloche export: a record in a form that other programs read. */
#include <errno.h>

#include "cli/source.h"
#include "cli/verb.h"
#include "report/har.h"

struct export_options {
	bool har;
	struct source_options source;
};

/* Where the blobs of the event at hand are. */
struct blobs {
	const struct source *source;
	size_t i;
};

static int read_blob(void *ctx, struct slice sha256, struct str *out)
{
	const struct blobs *blobs = ctx;

	struct feed *feed = source_feed(blobs->source, blobs->i);

	return feed->kind->blob(feed, sha256, NETWORK_BODY_MAX, out);
}

static bool sees_network(const struct event *ev)
{
	for (size_t i = 0; ev->kind == EVENT_TRACE_STARTED && i < ev->sources.n; i++)
		if (slice_is(ev->sources.items[i], "network"))
			return true;
	return false;
}

static int add_all(struct source *source, const struct source_ids *ids, struct blobs *blobs,
	struct har *har, struct err *err)
{
	const struct event *ev;
	struct slice line;
	bool is_seen = false;
	int r;

	while ((r = source_next(source, &ev, &line, &blobs->i, err)) == 1) {
		is_seen = is_seen || sees_network(ev);
		if (view_filter_takes(source_filter(source, blobs->i), ev))
			har_add(har, ev, ids->n > 1 ? ids->items[blobs->i] : NULL);
	}
	if (r < 0)
		return r;
	if (!is_seen)
		return err_set(err, -ENODATA,
			"the network was not watched: there is nothing to export; `cloche show %s` "
			"says why",
			ids->items[0]);
	return source_finish(source, err);
}

static int export_har(const struct cli *cli, const struct source_options *o,
	const struct source_ids *ids, struct err *err)
{
	scoped(source) struct source *source = NULL;
	struct blobs blobs = {0};
	scoped(har) struct har *har = har_new(read_blob, &blobs);
	scoped_str struct str out = {0};
	int r = source_open(cli, o, ids, &source, err);

	if (r < 0)
		return r;
	blobs.source = source;
	r = add_all(source, ids, &blobs, har, err);
	if (r < 0)
		return r;
	har_json(har, &out);
	str_putc(&out, '\n');
	return cli_print(&out, err);
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct export_options *o = options;
	struct source_ids ids;
	int r = source_find(cli, &o->source, args, n_args, &ids, err);

	if (r == 0)
		r = export_har(cli, &o->source, &ids, err);
	source_ids_done(&ids);
	return r;
}

static int check(void *options, char **args, size_t n_args, struct err *err)
{
	struct export_options *o = options;

	if (!o->har)
		return err_set(err, -EINVAL,
			"in which form? --har is there; a portable record is not part of this "
			"version");
	if (o->source.follow)
		return err_set(err, -EINVAL, "an export has an end: leave --follow out");
	return source_options_check(&o->source, args, n_args, err);
}

static void done(void *options)
{
	struct export_options *o = options;

	source_options_done(&o->source);
}

static const struct option table[] = {
	{"har", 0, NULL, "the HTTP requests as an HTTP Archive (HAR 1.2)", OPTION_ON,
		offsetof(struct export_options, har)},
	{"ocsf", 0, NULL, "export as OCSF", OPTION_LATER},
	{"otlp", 0, NULL, "export as OTLP", OPTION_LATER},
	{"chrome-trace", 0, NULL, "export for Chrome's trace viewer", OPTION_LATER},
	{"cast", 0, NULL, "export of terminal recordings", OPTION_LATER},
	{"redact", 0, NULL, "redaction of exports", OPTION_LATER},
	{NULL},
};
static const struct option_group groups[] = {{"Forms", table},
	{"What is exported", source_options_table, offsetof(struct export_options, source)},
	{NULL}};

const struct verb verb_export = {
	.name = "export",
	.class = VERB_VIEW,
	.usage = "ID | --label K=V",
	.help = "a record in a form that other programs read, on stdout",
	.text = "--har: HTTP exchanges, WebSocket messages and bodies, for browsers' tools.",
	.groups = groups,
	.options_size = sizeof(struct export_options),
	.done = done,
	.max_args = 1,
	.check = check,
	.run = run,
};
