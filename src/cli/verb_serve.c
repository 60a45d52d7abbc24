/* SPDX-License-Identifier: Apache-2.0 */
/* cloche serve: becomes the launcher of a control plane (launcher/main.c). */
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "cli/launcher_start.h"
#include "cli/passed_sockets.h"
#include "cli/verb.h"
#include "spec/spec.h"
#include "util/mem.h"

#define LISTEN_DEFAULT "127.0.0.1:7410"

struct serve_options {
	struct spec_words listen;
	const char *socket, *previews, *database, *tls_cert, *tls_key, *config, *user, *log;
	bool log_requests;
};

static const struct option table[] = {
	{"listen", 0, "ADDRESS:PORT", "where to listen, again for more (" LISTEN_DEFAULT ")",
		OPTION_WORDS, offsetof(struct serve_options, listen)},
	{"socket", 0, "PATH", "the Unix socket (cloche.sock in CLOCHE_RUN)", OPTION_TEXT,
		offsetof(struct serve_options, socket)},
	{"previews", 0, "ADDRESS:PORT", "where previews are shown (nowhere)", OPTION_TEXT,
		offsetof(struct serve_options, previews)},
	{"database", 0, "PLACE", "sqlite:PATH or postgres://... (a file in the state)", OPTION_TEXT,
		offsetof(struct serve_options, database)},
	{"tls-cert", 0, "FILE", "certificate and its chain, PEM", OPTION_TEXT,
		offsetof(struct serve_options, tls_cert)},
	{"tls-key", 0, "FILE", "its key, PEM", OPTION_TEXT,
		offsetof(struct serve_options, tls_key)},
	{"config", 0, "FILE", "what accounts may use of the host, JSON (docs/server.md)",
		OPTION_TEXT, offsetof(struct serve_options, config)},
	{"user", 0, "NAME", "as whom the half that faces the network runs (cloche-serve)",
		OPTION_TEXT, offsetof(struct serve_options, user)},
	{"log", 0, "FORM", "of the lines on stderr: text or json (text)", OPTION_TEXT,
		offsetof(struct serve_options, log)},
	{"log-requests", 0, NULL, "a line for each request, too", OPTION_ON,
		offsetof(struct serve_options, log_requests)},
	{NULL},
};
static const struct option_group groups[] = {{"Serve", table}, {NULL}};

static void done(void *options)
{
	struct serve_options *o = options;

	spec_words_done(&o->listen);
}

/* What was passed stands for what would be opened without a word; what is named is opened beside it. */
static void add_sockets(json_t *settings, const struct serve_options *o, const struct cli *cli,
	const struct passed_sockets *passed)
{
	scoped_mem char *socket = mem_printf("%s/cloche.sock", cli->run_dir);
	json_t *listen = json_array(), *names = json_array();

	for (size_t i = 0; i < o->listen.n; i++)
		json_array_append_new(listen, json_string(o->listen.items[i]));
	if (o->listen.n == 0 && passed->n == 0)
		json_array_append_new(listen, json_string(LISTEN_DEFAULT));
	for (size_t i = 0; i < passed->n; i++)
		json_array_append_new(names, json_string(passed->names[i]));
	json_object_set_new(settings, "listen", listen);
	json_object_set_new(settings, "passed", names);
	launcher_start_set(settings, "socket", o->socket ? o->socket : passed->n ? NULL : socket);
	launcher_start_set(settings, "previews", o->previews);
}

static int fill(json_t *settings, const struct serve_options *o, const struct cli *cli,
	const struct passed_sockets *passed, struct err *err)
{
	add_sockets(settings, o, cli, passed);
	launcher_start_set(settings, "database", o->database);
	launcher_start_set(settings, "tls_cert", o->tls_cert);
	launcher_start_set(settings, "tls_key", o->tls_key);
	launcher_start_set(settings, "user", o->user);
	launcher_start_set(settings, "log", o->log);
	json_object_set_new(settings, "log_requests", json_boolean(o->log_requests));
	if (o->log && strcmp(o->log, "text") != 0 && strcmp(o->log, "json") != 0)
		return err_set(err, -EINVAL, "--log: want text or json, not '%s'", o->log);
	return o->config ? launcher_start_config(settings, o->config, err) : 0;
}

static int run(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct passed_sockets passed = {.n = 0};
	json_t *settings = json_object();
	int r = cli_need_root(err);

	if (r == 0)
		r = passed_sockets_take(&passed, err);
	if (r == 0)
		r = fill(settings, options, cli, &passed, err);
	if (r == 0)
		r = launcher_start(cli, settings, &passed, err);
	json_decref(settings);
	passed_sockets_done(&passed);
	return r;
}

const struct verb verb_serve = {
	.name = "serve",
	.class = VERB_CARE,
	.usage = "",
	.help = "the control plane: many sandboxes over HTTP, with accounts and keys",
	.text = "Runs until it is told to end by SIGTERM or Ctrl-C; sandboxes outlive it. At its "
		"first start it prints the key of an admin, once. After SIGHUP it uses what "
		"--tls-cert and --tls-key hold then.",
	.groups = groups,
	.options_size = sizeof(struct serve_options),
	.done = done,
	.run = run,
};
