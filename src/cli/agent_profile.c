/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_profile.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spec/spec_network_parse.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/program.h"
#include "util/scoped.h"

#define PROFILE_MAX  (64 << 10)
#define NAME_LONGEST 32
#define HOME_INSIDE  "/root"

struct profile {
	struct spec *spec;
	const char *home; /* of the caller; "" where there is none */
	struct spec_words models;
};

static bool is_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n > 0 && n <= NAME_LONGEST && !name[n];
}

static bool has_mount_at(const struct spec *spec, const char *guest)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (strcmp(spec->mounts[i].guest, guest) == 0)
			return true;
	return false;
}

/* "~/.agent": at the same place below the home inside, copy on write. One that is not there is made inside. */
static int add_folder(struct profile *p, const char *text, struct err *err)
{
	scoped_mem char *path = NULL, *host = NULL, *guest = NULL;
	struct stat st;

	if (strncmp(text, "~/", 2) != 0 || !text[2])
		return err_set(err, -EINVAL, "'folders' are below the home: want \"~/NAME\"");
	path = mem_printf("%s%s", p->home, text + 1);
	guest = mem_printf(HOME_INSIDE "%s", text + 1);
	host = *p->home ? realpath(path, NULL) : NULL;
	if (!host || stat(host, &st) < 0 || !S_ISDIR(st.st_mode) || has_mount_at(p->spec, guest))
		return 0;
	spec_add_mount(p->spec, host, guest, SPEC_MOUNT_COW, false);
	p->spec->mounts[p->spec->n_mounts - 1].profile = true;
	return 0;
}

/* "NAME@HOST[,HOST]": where the caller has the variable. */
static int add_secret(struct profile *p, const char *text, struct err *err)
{
	struct spec_network *net = &p->spec->network;
	scoped_mem char *name = mem_copy(text, strcspn(text, "@"));
	const char *value = getenv(name);

	if (net->net == SPEC_NET_NONE || !value || !*value || spec_network_secret(net, name))
		return 0;
	return spec_network_parse_secret(text, net, err);
}

static int add_model(struct profile *p, const char *text, struct err *err)
{
	spec_words_add(&p->models, text);
	return 0;
}

/* A model is sent again whatever the agent has read. A stand-in that it saw once would have every later request
 * refused: it passes, for all secrets, those that the caller names among them. It is worth nothing there. */
static void pass_to_models(struct profile *p)
{
	struct spec_network *net = &p->spec->network;

	for (size_t i = 0; i < net->n_secrets; i++)
		for (size_t k = 0; k < p->models.n; k++)
			spec_words_add(&net->secrets[i].pass, p->models.items[k]);
}

/* With --net open everything public is allowed, and a rule would say more than that: private places of that name. */
static int add_rule(struct profile *p, const char *text, struct err *err)
{
	if (p->spec->network.net == SPEC_NET_ALLOW)
		spec_words_add(&p->spec->network.allow, text);
	return 0;
}

static int add_variable(struct profile *p, const char *text, struct err *err)
{
	size_t n = strcspn(text, "=");

	if (n == 0 || text[n] != '=')
		return err_set(err, -EINVAL, "'env': '%s': want NAME=VALUE", text);
	for (size_t i = 0; i < p->spec->env.n; i++)
		if (strncmp(p->spec->env.items[i], text, n + 1) == 0)
			return 0;
	spec_words_add(&p->spec->env, text);
	return 0;
}

static int add_tls(struct profile *p, const char *text, struct err *err)
{
	return spec_network_parse_tls(text, &p->spec->network, err);
}

static int tell(struct profile *p, const char *text, struct err *err)
{
	log_info("%s: %s", p->spec->profile, text);
	return 0;
}

static const struct {
	const char *key;
	int (*add)(struct profile *p, const char *text, struct err *err);
} keys[] = {{"folders", add_folder}, {"secrets", add_secret}, {"models", add_model},
	{"allow", add_rule}, {"env", add_variable}, {"tls", add_tls}, {"notes", tell}};

static int add_list(struct profile *p, const char *key, const json_t *list, struct err *err)
{
	size_t k = 0;
	int r = 0;

	while (k < sizeof(keys) / sizeof(keys[0]) && strcmp(keys[k].key, key) != 0)
		k++;
	if (k == sizeof(keys) / sizeof(keys[0]))
		return err_set(err, -EINVAL, "there is no key '%s'", key);
	if (!json_is_array(list))
		return err_set(err, -EINVAL, "'%s' must be a list of texts", key);
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		r = text ? keys[k].add(p, text, err)
		         : err_set(err, -EINVAL, "'%s' must be a list of texts", key);
	}
	return r;
}

static int add_all(struct profile *p, const struct str *text, struct err *err)
{
	json_error_t why;
	json_t *root = json_loadb(text->p, text->len, JSON_REJECT_DUPLICATES, &why);
	const char *key;
	json_t *list;
	int r = 0;

	if (!json_is_object(root))
		r = err_set(err, -EINVAL, "want a JSON object%s%s", root ? "" : ": ",
			root ? "" : why.text);
	json_object_foreach(root, key, list)
	{
		r = add_list(p, key, list, err);
		if (r < 0)
			break;
	}
	json_decref(root);
	return r;
}

/* A regular file: whoever owns a home may have put a pipe there. */
static int read_file(const char *path, struct str *text)
{
	scoped_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOENT;
	return fdio_read_all(fd, PROFILE_MAX, text);
}

/* *ret_path is where it was found. -ENOENT where there is none. */
static int find_file(const char *name, const char *home, struct str *ret_path, struct str *text)
{
	scoped_mem char *file = mem_printf("profiles/%s.json", name);
	int r = -ENOENT;

	if (*home) {
		str_printf(ret_path, "%s/.config/cloche/%s", home, file);
		r = read_file(ret_path->p, text);
	}
	if (r < 0 && program_find_data(file, ret_path, NULL) == 0)
		r = read_file(ret_path->p, text);
	return r;
}

static const char *base_name(const char *program)
{
	const char *slash = program ? strrchr(program, '/') : NULL;

	return slash ? slash + 1 : program;
}

int agent_profile_apply(struct spec *spec, const char *name, const char *program,
	const struct cli *cli, struct err *err)
{
	const char *wanted = name ? name : base_name(program);
	scoped_str struct str home = {0}, path = {0}, text = {0};
	struct profile p = {.spec = spec};
	int r = -ENOENT;

	if (!wanted || (name && strcmp(name, "none") == 0))
		return 0;
	cli_home(cli, &home);
	p.home = home.p ? home.p : "";
	if (is_name(wanted))
		r = find_file(wanted, p.home, &path, &text);
	if (r < 0 && !name)
		return 0;
	if (r < 0)
		return err_set(err, r,
			"there is no agent profile '%s': Cloche has claude, codex, copilot, "
			"gemini, "
			"opencode, pi and qwen, and yours are ~/.config/cloche/profiles/NAME.json",
			wanted);
	free(spec->profile);
	spec->profile = mem_dup(wanted);
	if (!spec->agent)
		spec->agent = mem_dup(wanted);
	r = add_all(&p, &text, err);
	pass_to_models(&p);
	spec_words_done(&p.models);
	return r < 0 ? err_wrap(err, r, "agent profile '%s'", path.p) : 0;
}
