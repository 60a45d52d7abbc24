/* SPDX-License-Identifier: Apache-2.0 */
/* Real overlays in a mount namespace of our own, with the options that a sandbox's have. */
#ifndef TESTS_OVERLAY_H
#define TESTS_OVERLAY_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "manifest/changes.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"

static char top[] = "/tmp/test_overlay.XXXXXX";

static void run_script(const char *dir, const char *script)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (chdir(dir) == 0)
			execl("/bin/sh", "sh", "-ec", script, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		fail_msg("script failed in %s: %s", dir, script);
}

static int open_set(struct change_set **ret)
{
	scoped_mem char *dir = mem_printf("%s/set", top);
	struct err err = {0};
	int r = change_set_open(dir, ret, &err);

	if (r < 0)
		fail_msg("%s", err.msg);
	return r;
}

/* Whose the host's folder is, and which host id is root inside. */
static unsigned owner_uid, owner_gid, id_base;
static bool
	has_shared; /* what an earlier sandbox left lies between the host's folder and the upper */

static void write_set(void)
{
	scoped_mem char *path = mem_printf("%s/set/changes.json", top);
	scoped_str struct str text = {0};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	str_printf(&text, "{\"v\":1,\"created_ns\":%lld,\"base\":%u,\"mounts\":[{\"n\":0,",
		now.tv_sec * 1000000000LL + now.tv_nsec, id_base);
	str_printf(&text, "\"host\":\"%s/host\",\"guest\":\"/proj\",\"upper\":\"0/upper\",", top);
	if (has_shared)
		str_printf(
			&text, "\"lowers\":[{\"dir\":\"%s/shared\",\"base\":%u}],", top, id_base);
	str_printf(&text, "\"owner_uid\":%u,\"owner_gid\":%u,", owner_uid, owner_gid);
	str_printf(&text, "\"uid_map\":[[%u,%u,1]],\"gid_map\":[[%u,%u,1]]}]}", owner_uid, id_base,
		owner_gid, id_base);
	assert_int_equal(fdio_replace(AT_FDCWD, path, text.p, text.len, 0600), 0);
}

static void mount_set(void)
{
	scoped_mem char *merged = mem_printf("%s/merged", top);
	scoped_mem char *shared = has_shared ? mem_printf("%s/shared:", top) : mem_dup("");
	scoped_mem char *options = mem_printf("lowerdir=%s%s/host,upperdir=%s/set/0/upper,"
					      "workdir=%s/set/0/work,redirect_dir=on,metacopy=on",
		shared, top, top, top);

	if (mount("overlay", merged, "overlay", 0, options) < 0)
		fail_msg("mount overlay: %s", strerror(errno));
}

__attribute__((unused)) static void begin(
	const char *host_script, const char *inside, const char *meanwhile)
{
	scoped_mem char *host = mem_printf("%s/host", top), *merged = mem_printf("%s/merged", top);

	run_script(top, "mkdir -p host merged set/0/upper set/0/work");
	run_script(host, host_script);
	usleep(20000); /* the clock of file times has a coarse tick */
	write_set();
	usleep(20000);
	mount_set();
	run_script(merged, inside);
	run_script(host, meanwhile);
}

/* Another sandbox goes on over what the first one left, as `cloche fork` has it. */
__attribute__((unused)) static void go_on(const char *inside)
{
	scoped_mem char *merged = mem_printf("%s/merged", top);

	assert_int_equal(umount(merged), 0);
	run_script(top, "mv set/0/upper shared; rm -r set/0/work; mkdir set/0/upper set/0/work");
	has_shared = true;
	write_set();
	mount_set();
	run_script(merged, inside);
}

__attribute__((unused)) static void end(void)
{
	scoped_mem char *merged = mem_printf("%s/merged", top);

	assert_int_equal(umount(merged), 0);
	run_script(top, "rm -rf host merged set shared");
	has_shared = false;
}

__attribute__((unused)) static struct changes *read_changes(const struct change_set *set)
{
	struct changes_query query = {.layer = &set->layers[0], .below = ""};
	struct changes *changes = NULL;
	struct err err = {0};

	if (changes_read(set, &query, &changes, &err) < 0)
		fail_msg("%s", err.msg);
	return changes;
}

/* The tests of a program that needs all this; 77 where it cannot be had. */
static int run_in_namespace(int (*run)(void))
{
	scoped_mem char *merged = NULL;
	int r;

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		printf("skipped: mounting overlays needs root\n");
		return 77;
	}
	if (!mkdtemp(top))
		return 1;
	r = run();
	/* What a failed case left mounted. */
	while (umount2(top, MNT_DETACH) == 0)
		;
	merged = mem_printf("%s/merged", top);
	(void)umount2(merged, MNT_DETACH);
	(void)path_remove_all(AT_FDCWD, top);
	return r;
}

#endif
