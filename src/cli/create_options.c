/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/create_options.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "cli/agent_profile.h"
#include "cli/create_within.h"
#include "cli/network_sets.h"
#include "cli/secret_values.h"
#include "spec/spec_parse.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/program.h"

#define SPEC_FILE_MAX (1 << 20)

static int set_rootfs(void *base, const char *value, struct err *err)
{
	struct spec *spec = base;
	char *real = NULL;

	if (strcmp(value, "host") != 0) {
		real = cli_is_elsewhere() ? mem_dup(value) : realpath(value, NULL);
		if (!real)
			return err_set(err, -errno, "'%s': %m", value);
	}
	free(spec->rootfs);
	spec->rootfs = real;
	return 0;
}

static int set_mount(void *base, const char *value, struct err *err)
{
	return spec_parse_mount(value, !cli_is_elsewhere(), base, err);
}

/* An empty pattern clears the list, so that what is hidden by default can be shown. */
static int set_hide(void *base, const char *value, struct err *err)
{
	struct spec *spec = base;

	if (*value)
		spec_words_add(&spec->hide, value);
	else
		spec_words_done(&spec->hide);
	return 0;
}

static int set_label(void *base, const char *value, struct err *err)
{
	struct spec_pair pair;
	int r = spec_parse_pair(value, &pair, err);

	if (r < 0)
		return r;
	spec_add_label(base, pair.key, pair.value);
	free(pair.key);
	free(pair.value);
	return 0;
}

static int set_trace(void *base, const char *value, struct err *err)
{
	struct spec *spec = base;

	if (!spec->trace)
		spec->trace = SPEC_TRACE_ALL;
	return 0;
}

static int set_no_trace(void *base, const char *value, struct err *err)
{
	struct spec *spec = base;

	spec->trace = 0;
	return 0;
}

static int set_sources(void *base, const char *value, struct err *err)
{
	struct spec *spec = base;

	return spec_parse_sources(value, &spec->trace, err);
}

static int set_on_loss(void *base, const char *value, struct err *err)
{
	struct spec *spec = base;

	return spec_parse_on_loss(value, &spec->on_loss, err);
}

static int set_durability(void *base, const char *value, struct err *err)
{
	struct spec *spec = base;

	return spec_parse_durability(value, &spec->durable, err);
}

/* YAML comes later; telling it from a broken JSON file makes for the better sentence. */
static bool looks_like_json(const struct str *text)
{
	size_t i = 0;

	while (i < text->len && isspace((unsigned char)text->p[i]))
		i++;
	return i < text->len && text->p[i] == '{';
}

static int set_spec_file(void *base, const char *value, struct err *err)
{
	struct create_options *o = base;
	scoped_str struct str text = {0};
	int r;

	r = fdio_read_file(AT_FDCWD, value, SPEC_FILE_MAX, &text);
	if (r < 0)
		return err_set(err, r, "'%s': %m", value);
	if (!looks_like_json(&text))
		return err_set(err, -EINVAL,
			"'%s' holds no JSON object: this version reads a spec as JSON only", value);
	r = spec_apply(o->spec, str_slice(&text), err);
	if (r < 0)
		return err_wrap(err, r, "'%s'", value);
	o->n_early_mounts = o->spec->n_mounts;
	return 0;
}

const struct option create_options_box[] = {
	{"rootfs", 0, "host|DIR",
		"the root filesystem: a read-only view of the host's programs under a "
		"writable layer (default), or an unpacked root",
		OPTION_CALL, .set = set_rootfs},
	{"mount", 'm', "HOST:GUEST:MODE",
		"show a folder: ro, rw, or cow (changes are kept apart until applied)", OPTION_CALL,
		.set = set_mount},
	{"full", 0, NULL,
		"read all that is mounted rw before the first command, so that `cloche changes` "
		"knows "
		"each file's content of before",
		OPTION_ON, offsetof(struct spec, full)},
	{"hide", 0, "PATTERN",
		"deny files of this name below mounts (more than .env*, .ssh, .aws, .gnupg, "
		".netrc and their like; an empty one clears that list)",
		OPTION_CALL, .set = set_hide},
	{"memory", 0, "SIZE", "memory limit, such as 512M", OPTION_SIZE,
		offsetof(struct spec, memory_bytes)},
	{"cpus", 0, "N", "CPU limit, such as 1.5", OPTION_CPUS, offsetof(struct spec, cpu_milli)},
	{"pids", 0, "N", "limit of processes and threads", OPTION_COUNT,
		offsetof(struct spec, pids_max)},
	{"disk", 0, "SIZE",
		"limit of what the sandbox keeps on disk: its own files and changes of cow folders "
		"together (needs project quotas, see doctor)",
		OPTION_SIZE, offsetof(struct spec, disk_bytes)},
	{"image", 0, "REF",
		"the root is made of an image: an OCI layout or an archive (./PATH[:TAG], also of "
		"docker "
		"or of a plain root), or one of a registry (NAME[:TAG][@DIGEST])",
		OPTION_COPY, offsetof(struct spec, image)},
	{NULL},
};

const struct option create_options_trace[] = {
	{"name", 0, "NAME", "a name for people; verbs take the id", OPTION_COPY,
		offsetof(struct spec, name)},
	{"task", 0, "TEXT", "what it is for; stands in the summary", OPTION_COPY,
		offsetof(struct spec, task)},
	{"account", 0, "NAME", "the account it belongs to", OPTION_COPY,
		offsetof(struct spec, account)},
	{"label", 0, "K=V", "a label; views take --label instead of an id", OPTION_CALL,
		.set = set_label},
	{"trace", 0, NULL, "watch programs, files, mounts, outputs and network (run: the default)",
		OPTION_CALL, .set = set_trace},
	{"no-trace", 0, NULL, "keep the exec log only", OPTION_CALL, .set = set_no_trace},
	{"trace-sources", 0, "LIST", "watch only these: processes,files,outputs,network,mounts",
		OPTION_CALL, .set = set_sources},
	{"buffer", 0, "SIZE", "what the observer may hold (64M)", OPTION_SIZE,
		offsetof(struct spec, buffer_bytes)},
	{"on-loss", 0, "WHAT",
		"when events come faster than they are kept: freeze the sandbox (default), "
		"stop it, or continue and count",
		OPTION_CALL, .set = set_on_loss},
	{"record-raw", 0, NULL, "keep secrets in arguments as they are", OPTION_ON,
		offsetof(struct spec, record_raw)},
	{"durability", 0, "WHAT",
		"what the exec log survives: the death of a process (default), or disk: a "
		"power cut",
		OPTION_CALL, .set = set_durability},
	{NULL},
};

const struct option create_options_other[] = {
	{"agent", 0, "PROFILE",
		"what an agent program needs (its folders, keys as secrets, hosts, variables): "
		"claude, "
		"codex, copilot, gemini, opencode, pi, qwen, one of yours, or none; run picks the "
		"one "
		"called like its command",
		OPTION_TEXT, offsetof(struct create_options, agent)},
	{"pull", 0, NULL, "ask the registry for --image also where it was fetched before",
		OPTION_ON, offsetof(struct create_options, image.pull)},
	{"within", 0, "FILE", "refuse what of the host this file does not list (docs/server.md)",
		OPTION_TEXT, offsetof(struct create_options, within)},
	{"hidden", 0, "FILE",
		"values of secrets and the proxy's credentials are in this JSON file "
		"(docs/server.md), and the environment is not asked",
		OPTION_TEXT, offsetof(struct create_options, hidden)},
	{"spec", 0, "FILE", "read the options from a JSON file; those named here win", OPTION_CALL,
		.set = set_spec_file, .early = true},
	{NULL},
};

void *create_options_spec(void *base)
{
	struct create_options *o = base;

	return o->spec;
}

void create_options_init(struct create_options *o)
{
	o->spec = spec_new();
	image_choice_init(&o->image);
}

void create_options_done(struct create_options *o)
{
	spec_free(o->spec);
	image_choice_done(&o->image);
	spec_words_done(&o->secret_files);
}

static int resolve(struct create_options *o, const char *key, char **path, struct err *err)
{
	char *real = realpath(*path, NULL);
	int r = -errno;

	if (!real) {
		r = o->within ? create_within_missing(key, *path, o->within, r, err)
		              : err_set(err, r, "%s: '%s': %m", key, *path);
		o->is_forbidden = o->within && r == -EPERM;
		return r;
	}
	free(*path);
	*path = real;
	return 0;
}

/* A spec file names folders as the user would; a spec holds them resolved, and ours are never the user's. */
static int resolve_folders(struct create_options *o, struct err *err)
{
	int r = o->spec->rootfs ? resolve(o, "rootfs", &o->spec->rootfs, err) : 0;

	for (size_t i = 0; r == 0 && i < o->n_early_mounts; i++) {
		struct spec_mount *m = &o->spec->mounts[i];

		r = resolve(o, "mounts", &m->host, err);
		m->internal = m->profile = false;
	}
	return r;
}

/* Without the gateway there is no way out. */
static int check_net(const struct spec *spec, struct err *err)
{
	scoped_str struct str path = {0};

	return spec->network.net == SPEC_NET_NONE ? 0 : program_find("cloche-gateway", &path, err);
}

static int check_within(struct create_options *o, struct err *err)
{
	int r = create_within_check(o->spec, o->within, err);

	o->is_forbidden = r == -EPERM;
	return r;
}

int create_options_shape(struct create_options *o, const struct cli *cli, struct err *err)
{
	int r = cli_need_root(err);

	if (r == 0)
		r = resolve_folders(o, err);
	spec_network_settle(&o->spec->network);
	if (r == 0 && o->within)
		r = check_within(o, err);
	else if (r == 0 && o->spec->network.control_plane)
		r = err_set(err, -EINVAL,
			"control_plane is for sandboxes that `cloche serve` makes: nobody answers "
			"others");
	/* Once before much is unpacked, and once when all is known. */
	if (r == 0 && o->spec->image)
		r = spec_check(o->spec, cli->state_dir, cli->run_dir, err);
	if (r == 0)
		r = image_choice_resolve(&o->image, o->spec, cli, err);
	if (r < 0)
		return r;
	r = agent_profile_apply(o->spec, o->agent, o->program, cli, err);
	return r < 0 ? r : network_sets_open(&o->spec->network, cli, err);
}

int create_options_finish(struct create_options *o, const struct cli *cli, struct err *err)
{
	int r = create_options_shape(o, cli, err);

	if (r == 0)
		r = secret_values_fill(&o->spec->network,
			&(struct secret_sources){.files = &o->secret_files, .hidden = o->hidden},
			err);
	if (r < 0)
		return r;
	o->spec->owner_uid = cli->uid;
	o->spec->owner_gid = cli->gid;
	r = spec_check(o->spec, cli->state_dir, cli->run_dir, err);
	return r < 0 ? r : check_net(o->spec, err);
}
