/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/image_choice.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/layers.h"
#include "launcher/launch.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/program.h"

#define ANSWER_MAX (64u << 20)

/* What it, and skopeo below it, are to know. All else stays here, values of secrets among it: children of it read what is
 * foreign, and write what a sandbox sees. */
static const char *const passed_on[] = {"PATH", "HOME", "TERM", "CLOCHE_IMAGE_MAX",
	"CLOCHE_IMAGE_MAX_ENTRIES", "CLOCHE_ID_BASE", "CLOCHE_STATE", "CLOCHE_RUN",
	"XDG_RUNTIME_DIR", "REGISTRY_AUTH_FILE", "DOCKER_CONFIG", "HTTP_PROXY", "HTTPS_PROXY",
	"ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"};
#define N_PASSED (sizeof(passed_on) / sizeof(passed_on[0]))

void image_choice_init(struct image_choice *choice)
{
	*choice = (struct image_choice){.lock_fd = -1};
}

void image_choice_release(struct image_choice *choice)
{
	scoped_close(&choice->lock_fd);
	choice->lock_fd = -1;
}

void image_choice_done(struct image_choice *choice)
{
	image_choice_release(choice);
	spec_words_done(&choice->own_entrypoint);
	spec_words_done(&choice->own_cmd);
}

static void fill_env(char *env[N_PASSED + 1])
{
	size_t n = 0;

	for (size_t i = 0; i < N_PASSED; i++) {
		const char *value = getenv(passed_on[i]);

		if (value)
			env[n++] = mem_printf("%s=%s", passed_on[i], value);
	}
	env[n] = NULL;
}

static int spawn(char *const argv[], int out_fd, pid_t *ret_pid, struct err *err)
{
	posix_spawn_file_actions_t actions;
	char *env[N_PASSED + 1];
	int r;

	fill_env(env);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
	r = posix_spawn(ret_pid, argv[0], &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	for (size_t i = 0; env[i]; i++)
		free(env[i]);
	return r == 0 ? 0 : err_set(err, -r, "start '%s': %m", argv[0]);
}

/* What it prints, whole. */
static int ask(char *const argv[], struct str *out, struct err *err)
{
	int pair[2], status = 0, r;
	pid_t pid = 0;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_set(err, -errno, "make a pipe: %m");
	r = spawn(argv, pair[1], &pid, err);
	(void)close(pair[1]);
	if (r == 0)
		r = fdio_read_all(pair[0], ANSWER_MAX, out);
	(void)close(pair[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0 && pid > 0)
		r = err_set(err, r, "read the answer of '%s': %m", argv[0]);
	if (r == 0 && out->len == 0)
		r = err_set(err, -EIO, "'%s' ended without an answer (status %d)", argv[0], status);
	return r;
}

static int start(const struct image_choice *choice, const struct spec *spec, const struct cli *cli,
	struct str *out, struct err *err)
{
	scoped_mem char *uid = mem_printf("%u", cli->uid), *gid = mem_printf("%u", cli->gid);
	scoped_str struct str program = {0};
	int r = program_find("cloche-image", &program, err);

	if (r < 0)
		return r;
	return ask((char *[]){program.p, (char[]){"resolve"}, cli->state_dir, uid, gid,
			   cli->quiet ? (char[]){"quiet"} : (char[]){"shown"},
			   choice->pull ? (char[]){"anew"} : (char[]){"known"}, spec->image, NULL},
		out, err);
}

static void take_words(struct spec_words *words, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		spec_words_add(words, json_string_value(json_array_get(list, i)));
}

/* As docker: one empty word is none. */
static void take_entrypoint(struct spec_words *words, const json_t *list)
{
	const char *first = json_string_value(json_array_get(list, 0));

	if (json_array_size(list) != 1 || (first && *first))
		take_words(words, list);
}

static void take_layers(struct spec *spec, const json_t *image, const struct cli *cli)
{
	const json_t *layers = json_object_get(image, "layers");
	uint32_t base = (uint32_t)json_integer_value(json_object_get(image, "base"));
	scoped_mem char *state = realpath(cli->state_dir, NULL);

	for (size_t i = 0; i < json_array_size(layers); i++) {
		scoped_mem char *dir = mem_printf("%s/layers/%s/fs", state ? state : cli->state_dir,
			json_string_value(json_array_get(layers, i)));

		spec_add_lower(spec, "/", dir, base);
	}
}

/* A place that is relative is meant from the root. */
static char *clean_place(const char *place)
{
	struct str clean = {0};

	path_resolve(slice_of("/"), slice_of(place), &clean);
	return str_take(&clean);
}

static void take_image(
	struct image_choice *choice, struct spec *spec, const json_t *image, const struct cli *cli)
{
	const char *workdir = json_string_value(json_object_get(image, "workdir"));
	const char *user = json_string_value(json_object_get(image, "user"));

	take_layers(spec, image, cli);
	take_words(&spec->image_env, json_object_get(image, "env"));
	take_words(&spec->image_labels, json_object_get(image, "labels"));
	take_entrypoint(&choice->own_entrypoint, json_object_get(image, "entrypoint"));
	take_words(&choice->own_cmd, json_object_get(image, "cmd"));
	spec->image_digest = mem_dup(json_string_value(json_object_get(image, "digest")));
	if (!spec->workdir && workdir)
		spec->workdir = clean_place(workdir);
	if (!spec->user && user)
		spec->user = mem_dup(user);
}

static int read_answer(struct image_choice *choice, struct spec *spec, const struct cli *cli,
	const struct str *text, struct err *err)
{
	json_t *root = json_loadb(text->p, text->len, 0, NULL);
	const char *error = json_string_value(json_object_get(root, "error"));
	const char *note = json_string_value(json_object_get(root, "note"));
	const json_t *image = json_object_get(root, "image");
	int r = 0;

	if (error)
		r = err_set(
			err, -(int)json_integer_value(json_object_get(root, "errno")), "%s", error);
	else if (!json_is_object(image))
		r = err_set(err, -EBADMSG, "the answer of cloche-image cannot be read");
	else
		take_image(choice, spec, image, cli);
	if (r == 0 && note && *note)
		log_info("image '%s': left out: %s", spec->image, note);
	json_decref(root);
	return r;
}

int image_choice_resolve(
	struct image_choice *choice, struct spec *spec, const struct cli *cli, struct err *err)
{
	scoped_str struct str answer = {0};
	int r;

	if (!spec->image)
		return 0;
	r = launch_make_state(cli->state_dir, err);
	if (r == 0)
		r = choice->lock_fd = layers_lock(cli->state_dir, false, err);
	if (r >= 0)
		r = start(choice, spec, cli, &answer, err);
	return r < 0 ? r : read_answer(choice, spec, cli, &answer, err);
}

int image_choice_clean(const struct cli *cli, struct err *err)
{
	scoped_mem char *folder = mem_printf("%s/layers", cli->state_dir);
	scoped_str struct str program = {0}, answer = {0};
	int r;

	if (access(folder, F_OK) < 0)
		return 0;
	r = program_find("cloche-image", &program, err);
	return r < 0 ? r
	             : ask((char *[]){program.p, (char[]){"clean"}, cli->state_dir, NULL}, &answer,
			       err);
}

static void add_all(struct spec_words *words, const struct spec_words *more)
{
	for (size_t i = 0; i < more->n; i++)
		spec_words_add(words, more->items[i]);
}

int image_choice_command(const struct image_choice *choice, char **words, size_t n_words,
	struct spec_words *ret_argv, struct err *err)
{
	bool is_replaced = choice->entrypoint != NULL;

	if (is_replaced && *choice->entrypoint)
		spec_words_add(ret_argv, choice->entrypoint);
	else if (!is_replaced)
		add_all(ret_argv, &choice->own_entrypoint);
	for (size_t i = 0; i < n_words; i++)
		spec_words_add(ret_argv, words[i]);
	/* As docker: what the image would give its own entrypoint is not for another. */
	if (n_words == 0 && !is_replaced)
		add_all(ret_argv, &choice->own_cmd);
	if (ret_argv->n == 0)
		return err_set(err, -EINVAL,
			"the image names no command: want -- COMMAND [ARG...] or --shell STRING");
	return 0;
}
