/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_options.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/path_folders.h"
#include "util/mem.h"
#include "util/path.h"

static int set_apply(void *base, const char *value, struct err *err)
{
	struct run_options *o = base;

	if (value && strcmp(value, "on-success") != 0)
		return err_set(err, -EINVAL, "'%s': want --apply or --apply=on-success", value);
	o->apply = value ? RUN_APPLY_ON_SUCCESS : RUN_APPLY_ALWAYS;
	return 0;
}

static int set_fail_on(void *base, const char *value, struct err *err)
{
	static const struct {
		const char *name;
		unsigned bit;
	} conditions[] = {{"refused", RUN_FAIL_REFUSED}, {"denied", RUN_FAIL_DENIED},
		{"incomplete", RUN_FAIL_INCOMPLETE}, {"command", RUN_FAIL_COMMAND}};
	struct run_options *o = base;
	scoped_mem char *copy = mem_dup(value);
	char *rest = copy, *name;

	while ((name = strsep(&rest, ","))) {
		unsigned bit = 0;

		for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
			if (strcmp(conditions[i].name, name) == 0)
				bit = conditions[i].bit;
		if (!bit)
			return err_set(err, -EINVAL,
				"'%s': want refused, denied, incomplete or command", name);
		o->fail_on |= bit;
	}
	return 0;
}

static int refuse_detach(void *base, const char *value, struct err *err)
{
	return err_set(err, -EINVAL, "run waits for its command; use create and exec --detach");
}

static int set_keep(void *base, const char *value, struct err *err)
{
	struct run_options *o = base;

	o->create.spec->keep = true;
	return 0;
}

static const struct option table[] = {
	{"ro", 0, NULL, "show the current folder read-only", OPTION_ON,
		offsetof(struct run_options, ro)},
	{"rw", 0, NULL, "let the command write to the current folder itself", OPTION_ON,
		offsetof(struct run_options, rw)},
	{"apply", 0, "[=on-success]", "take the changes of the current folder over at the end",
		OPTION_CALL, .set = set_apply},
	{"keep", 0, NULL, "keep the root's layer too", OPTION_CALL, .set = set_keep},
	{"entrypoint", 0, "PROGRAM",
		"start this in place of the image's entrypoint, before the command; an empty one: "
		"nothing",
		OPTION_TEXT, offsetof(struct run_options, create.image.entrypoint)},
	{"id-file", 0, "FILE", "write the sandbox's id to this file", OPTION_TEXT,
		offsetof(struct run_options, id_file)},
	{"no-summary", 0, NULL, "print no summary at the end", OPTION_ON,
		offsetof(struct run_options, no_summary)},
	{"markdown-file", 0, "FILE", "write the summary as Markdown to this file", OPTION_TEXT,
		offsetof(struct run_options, markdown_file)},
	{"fail-on", 0, "LIST",
		"exit with 123 where the command succeeded but one of these was seen: "
		"refused,denied,incomplete,command",
		OPTION_CALL, .set = set_fail_on},
	{"detach", 0, NULL, NULL, OPTION_CALL, .set = refuse_detach},
	{"export", 0, "FILE", "the export of records", OPTION_LATER},
	{NULL},
};

const struct option_group run_options_groups[] = {
	{"Run", table},
	EXEC_OPTIONS_GROUPS(offsetof(struct run_options, exec)),
	CREATE_OPTIONS_GROUPS(offsetof(struct run_options, create)),
	{NULL},
};

void run_options_init(void *options)
{
	struct run_options *o = options;

	create_options_init(&o->create);
	exec_options_init(&o->exec);
	o->create.spec->trace = SPEC_TRACE_ALL;
}

void run_options_done(void *options)
{
	struct run_options *o = options;

	create_options_done(&o->create);
	exec_options_done(&o->exec);
}

int run_options_check(void *options, char **args, size_t n_args, struct err *err)
{
	struct run_options *o = options;

	if (o->rw + o->ro + (o->apply != RUN_APPLY_NO) > 1)
		return err_set(
			err, -EINVAL, "options '--rw', '--ro' and '--apply' exclude each other");
	if (o->create.image.entrypoint && !o->create.spec->image)
		return err_set(err, -EINVAL, "option '--entrypoint' replaces that of an --image");
	if (o->create.image.entrypoint && o->exec.exec->command)
		return err_set(err, -EINVAL,
			"options '--shell' and '--entrypoint' exclude each other: --shell runs "
			"/bin/sh");
	return exec_options_check(&o->exec, n_args, o->create.spec->image != NULL, err);
}

static const struct spec_mount *mount_of(const struct spec *spec, const char *host)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (strcmp(spec->mounts[i].host, host) == 0)
			return &spec->mounts[i];
	return NULL;
}

static int check_default_folder(const char *cwd, const char *home, struct err *err)
{
	if (strcmp(cwd, "/") == 0)
		return err_set(err, -EINVAL,
			"the current folder is /: go to a project's folder, or name one with "
			"--mount");
	if (strcmp(cwd, home) == 0)
		return err_set(err, -EINVAL,
			"the current folder is your home: go to a project's folder, or name it "
			"with "
			"--mount %s:%s:cow",
			cwd, cwd);
	return 0;
}

/* The current folder at its own path, cow unless asked otherwise; not where mounts were named, and never
 * the home or / by mere default. The command starts there. */
static int add_current_folder(struct run_options *o, const char *home, struct err *err)
{
	struct spec *spec = o->create.spec;
	scoped_mem char *cwd = getcwd(NULL, 0);
	const struct spec_mount *named = cwd ? mount_of(spec, cwd) : NULL;
	int r;

	if (!cwd)
		return err_set(err, -errno, "the current folder: %m");
	if (named && (o->rw || o->ro))
		return err_set(err, -EINVAL,
			"--mount names the current folder already: leave '--%s' out",
			o->rw ? "rw" : "ro");
	if (!named && spec->n_mounts && !o->rw && !o->ro && o->apply == RUN_APPLY_NO)
		return 0;
	if (!named) {
		r = check_default_folder(cwd, home, err);
		if (r < 0)
			return r;
		spec_add_mount(spec, cwd, cwd,
			o->rw   ? SPEC_MOUNT_RW
			: o->ro ? SPEC_MOUNT_RO
				: SPEC_MOUNT_COW,
			false);
	}
	if (!o->exec.exec->cwd)
		o->exec.exec->cwd = mem_dup(named ? named->guest : cwd);
	return 0;
}

/* What the image would start where nothing is named starts where the image wants it. */
static int choose_command(struct run_options *o, char **args, size_t n_args, struct err *err)
{
	struct spec_exec *exec = o->exec.exec;
	const char *workdir = o->create.spec->workdir;

	if (exec->command)
		return 0;
	if (n_args == 0 && !o->has_workdir && workdir) {
		free(exec->cwd);
		exec->cwd = mem_dup(workdir);
	}
	return image_choice_command(&o->create.image, args, n_args, &exec->argv, err);
}

int run_options_finish(
	struct run_options *o, const struct cli *cli, char **args, size_t n_args, struct err *err)
{
	scoped_str struct str home = {0};
	int r = cli_need_root(err);

	if (r < 0)
		return r;
	cli_home(cli, &home);
	o->create.program = n_args ? args[0] : NULL;
	o->has_workdir = o->exec.exec->cwd != NULL;
	r = add_current_folder(o, home.p ? home.p : "", err);
	if (r == 0)
		r = create_options_finish(&o->create, cli, err);
	if (r < 0)
		return r;
	if (!o->create.spec->rootfs && !o->create.spec->image)
		path_folders_add(
			o->create.spec, o->exec.exec, home.p ? home.p : "", cli->state_dir);
	exec_options_finish(&o->exec, cli);
	return choose_command(o, args, n_args, err);
}
