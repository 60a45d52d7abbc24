/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/scoped.h"

#define SERVER_ENV "CLOCHE_SERVER"

/* What the early options named: known before the others are looked at, which may be paths of the host. */
static struct {
	bool state, server;
} named;

bool cli_is_elsewhere(void)
{
	const char *server = getenv(SERVER_ENV);

	return named.server || (!named.state && server && *server);
}

static int set_server(void *base, const char *value, struct err *err)
{
	struct cli *cli = base;

	if (!*value)
		return err_set(err, -EINVAL, "want the URL of a control plane");
	cli->server = value;
	named.server = true;
	return 0;
}

static int set_state(void *base, const char *value, struct err *err)
{
	struct cli *cli = base;

	if (!*value)
		return err_set(err, -EINVAL, "want a folder");
	named.state = true;
	free(cli->state_dir);
	cli->state_dir = mem_dup(value);
	return 0;
}

static int set_color(void *base, const char *value, struct err *err)
{
	static const char *const names[] = {[CLI_COLOR_AUTO] = "auto",
		[CLI_COLOR_ALWAYS] = "always",
		[CLI_COLOR_NEVER] = "never"};
	struct cli *cli = base;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], value) == 0) {
			cli->color = (enum cli_color)i;
			return 0;
		}
	return err_set(err, -EINVAL, "'%s': want auto, always or never", value);
}

static const struct option options[] = {
	{"state", 0, "DIR",
		"where sandboxes and records are kept (CLOCHE_STATE; " CLI_STATE_DEFAULT ")",
		OPTION_CALL, .set = set_state, .early = true},
	{"json", 0, NULL, "print one JSON document", OPTION_ON, offsetof(struct cli, json)},
	{"jsonl", 0, NULL, "print one JSON object a line", OPTION_ON, offsetof(struct cli, jsonl)},
	{"color", 0, "WHEN", "auto, always or never (NO_COLOR is honoured)", OPTION_CALL,
		.set = set_color},
	{"quiet", 'q', NULL, "say only what was asked for", OPTION_ON, offsetof(struct cli, quiet)},
	{"verbose", 'v', NULL, "say more", OPTION_ON, offsetof(struct cli, verbose)},
	{"help", 'h', NULL, "print this text", OPTION_ON, offsetof(struct cli, help)},
	{"version", 0, NULL, "print the version", OPTION_ON, offsetof(struct cli, version)},
	{"actor", 0, "WHO", "for whom it is done, as ledger and record name it (root only)",
		OPTION_TEXT, offsetof(struct cli, actor)},
	{"server", 0, "URL",
		"ask this control plane, not this host: https://..., http://..., or "
		"unix://SOCKET (CLOCHE_SERVER)",
		OPTION_CALL, .set = set_server, .early = true},
	{"key", 0, "KEY",
		"the key for it; others see it in the list of processes, so rather CLOCHE_KEY or "
		"--key-file",
		OPTION_TEXT, offsetof(struct cli, key)},
	{"key-file", 0, "FILE", "the key for it is in this file", OPTION_TEXT,
		offsetof(struct cli, key_file)},
	{"server-ca", 0, "FILE",
		"trust the certificates in this file (PEM), not the system's "
		"(CLOCHE_SERVER_CA)",
		OPTION_TEXT, offsetof(struct cli, server_ca)},
	{NULL},
};

const struct option_group cli_global_groups[] = {{"Global options", options}, {NULL}};

/* The id that sudo left, where sudo it was. */
static unsigned long sudo_id(const char *name, unsigned long otherwise)
{
	const char *text = geteuid() == 0 ? getenv(name) : NULL;
	char *end;
	unsigned long id;

	if (!text || *text < '0' || *text > '9')
		return otherwise;
	errno = 0;
	id = strtoul(text, &end, 10);
	return *end || errno || id >= UINT32_MAX ? otherwise : id;
}

int cli_settle(struct cli *cli, struct err *err)
{
	const char *env = getenv("CLOCHE_STATE"), *run = getenv("CLOCHE_RUN");
	scoped_mem char *cwd = NULL;
	struct str state = {0};

	if (cli->server && cli->state_dir)
		return err_set(err, -EINVAL,
			"options '--server' and '--state' exclude each other: the one asks a "
			"control plane, the other is a folder of this host");
	if (!cli->server && cli_is_elsewhere())
		cli->server = getenv(SERVER_ENV);
	if (cli->json && cli->jsonl)
		return err_set(err, -EINVAL, "options '--json' and '--jsonl' exclude each other");
	if (!cli->state_dir)
		cli->state_dir = mem_dup(env && *env ? env : CLI_STATE_DEFAULT);
	cwd = getcwd(NULL, 0);
	path_resolve(slice_of(cwd ? cwd : "/"), slice_of(cli->state_dir), &state);
	free(cli->state_dir);
	cli->state_dir = str_take(&state);
	cli->run_dir = run && *run ? run : CLI_RUN_DEFAULT;
	cli->uid = (uid_t)sudo_id("SUDO_UID", getuid());
	cli->gid = (gid_t)sudo_id("SUDO_GID", getgid());
	snprintf(cli->own_actor, sizeof(cli->own_actor), "uid:%u", (unsigned)cli->uid);
	if (!cli->actor || geteuid() != 0)
		cli->actor = cli->own_actor;
	log_set_verbose(cli->verbose);
	return 0;
}

int cli_need_root(struct err *err)
{
	if (geteuid() == 0)
		return 0;
	return err_set(err, -EPERM, "this needs root on the host: run it with sudo");
}

void cli_done(struct cli *cli)
{
	free(cli->state_dir);
}

bool cli_has_color(const struct cli *cli, int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (cli->color != CLI_COLOR_AUTO)
		return cli->color == CLI_COLOR_ALWAYS;
	return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(fd);
}

struct view_style cli_style(const struct cli *cli)
{
	struct winsize size = {0};

	if (ioctl(1, TIOCGWINSZ, &size) < 0)
		size.ws_col = 0;
	return (struct view_style){.color = cli_has_color(cli, 1), .columns = size.ws_col};
}

int cli_print(const struct str *text, struct err *err)
{
	int r = fdio_write_all(1, text->p, text->len);

	return r < 0 ? err_set(err, r, "write to stdout: %m") : 0;
}

void cli_home(const struct cli *cli, struct str *out)
{
	const char *home = cli->uid == geteuid() ? getenv("HOME") : NULL;
	const struct passwd *pw = home && *home ? NULL : getpwuid(cli->uid);
	scoped_mem char *real = NULL;

	if (pw)
		home = pw->pw_dir;
	if (home && *home)
		real = realpath(home, NULL);
	if (real)
		str_puts(out, real);
}
