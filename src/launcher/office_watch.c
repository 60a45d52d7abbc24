/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/office_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "util/base64.h"
#include "util/program.h"

#define PATH_LEN  4095
#define FILES_MAX "100000" /* that one knows: 35 MB */

int office_watch_read(const json_t *body, struct str *path, struct err *err)
{
	const char *text = json_string_value(json_object_get(body, "path_b64"));

	if (!text || base64_decode(slice_of(text), path) < 0 || path->len == 0 ||
		path->len > PATH_LEN || path->p[0] != '/' || memchr(path->p, '\0', path->len))
		return err_set(err, -EINVAL, "want an absolute path of at most %d bytes", PATH_LEN);
	return 0;
}

/* As a program that nobody kept from being ended: the launcher leaves its children deaf to signals. */
static void hear_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
}

_Noreturn void office_watch_become(const struct office *office, const char *id,
	const struct str *path, bool is_patient, int out_fd)
{
	scoped_str struct str program = {0};
	struct err err;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const char *how = is_patient ? "--wait" : "--quiet"; /* nobody hears its stderr anyway */
	const char *argv[] = {"cloche", "--state", office->state_dir, "watch-files", "--bounds",
		"--files", FILES_MAX, how, "--", id, path->p, NULL};

	if (program_find("cloche", &program, &err) < 0)
		_exit(127);
	(void)dup2(out_fd, 1);
	(void)dup2(null, 0);
	(void)dup2(null, 2);
	(void)close_range(3, ~0U, 0); /* also what the answer went through: it was the last */
	hear_signals();
	(void)chdir("/");
	(void)execv(program.p, (char *const *)argv);
	_exit(127);
}
