/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/launcher_start.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/program.h"
#include "util/scoped.h"

#define CONFIG_MAX  (1u << 20)
#define SETTINGS_AT 3
#define PASSED_AT   4 /* and behind it: see launcher/serve_process.h */

void launcher_start_set(json_t *settings, const char *key, const char *text)
{
	if (text)
		json_object_set_new(settings, key, json_string(text));
}

int launcher_start_config(json_t *settings, const char *path, struct err *err)
{
	scoped_str struct str text = {0};
	json_error_t why;
	json_t *config;
	int r = fdio_read_file(AT_FDCWD, path, CONFIG_MAX, &text);

	if (r < 0)
		return err_set(err, r, "read '%s': %m", path);
	config = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, &why);
	if (!json_is_object(config)) {
		json_decref(config);
		return err_set(err, -EINVAL, "'%s' holds no JSON object: %s (line %d)", path,
			why.text, why.line);
	}
	json_object_set_new(settings, "config", config);
	return 0;
}

static int hand_over(const json_t *settings, const struct passed_sockets *passed, struct err *err)
{
	scoped_mem char *text = json_dumps(settings, JSON_COMPACT);
	int fd = memfd_create("settings", 0);
	int r = fd < 0 ? -errno : fdio_write_all(fd, text, strlen(text));

	if (r < 0 || lseek(fd, 0, SEEK_SET) < 0 || (fd != SETTINGS_AT && dup2(fd, SETTINGS_AT) < 0))
		return err_set(err, r < 0 ? r : -errno, "hand over the settings: %m");
	return passed_sockets_place(passed, PASSED_AT, err);
}

int launcher_start(const struct cli *cli, const json_t *settings,
	const struct passed_sockets *passed, struct err *err)
{
	const struct passed_sockets none = {.n = 0};
	scoped_str struct str program = {0};
	int r = program_find("cloche-launcher", &program, err);

	passed = passed ? passed : &none;
	if (r == 0)
		r = hand_over(settings, passed, err);
	if (r < 0)
		return r;
	(void)close_range(PASSED_AT + (unsigned)passed->n, ~0U, 0);
	execl(program.p, "cloche-launcher", cli->state_dir, cli->run_dir, (char *)NULL);
	return err_set(err, -errno, "start '%s': %m", program.p);
}
