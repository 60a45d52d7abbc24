/* SPDX-License-Identifier: Apache-2.0 */
/* Life of a spec_exec, and its JSON. */
#include <errno.h>
#include <string.h>

#include "spec/spec_internal.h"
#include "util/mem.h"

/* What programs of ours look for. */
#define PLANE_VARIABLE "CLOCHE_SERVER=http://" SPEC_PLANE_HOST

struct spec_exec *spec_exec_new(void)
{
	return new0(struct spec_exec);
}

void spec_exec_free(struct spec_exec *exec)
{
	if (!exec)
		return;
	spec_words_done(&exec->argv);
	free(exec->command);
	free(exec->cwd);
	spec_words_done(&exec->env);
	free(exec->user);
	free(exec->source);
	free(exec->via);
	free(exec->actor);
	free(exec->operation);
	free(exec->detail);
	free(exec);
}

void spec_exec_write(struct str *out, const struct spec_exec *exec)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	if (exec->command)
		jsonw_ktext(&j, "command", exec->command);
	else
		spec_json_write_words(&j, "argv", &exec->argv);
	spec_json_write_given(&j, "cwd", exec->cwd);
	spec_json_write_words(&j, "env", &exec->env);
	spec_json_write_given(&j, "user", exec->user);
	jsonw_kint(&j, "timeout_ms", exec->timeout_ms);
	jsonw_kbool(&j, "terminal", exec->terminal);
	jsonw_kint(&j, "rows", exec->rows);
	jsonw_kint(&j, "columns", exec->columns);
	jsonw_kbool(&j, "has_stdin", exec->has_stdin);
	jsonw_kbool(&j, "detach", exec->detach);
	spec_json_write_given(&j, "source", exec->source);
	spec_json_write_given(&j, "via", exec->via);
	spec_json_write_given(&j, "actor", exec->actor);
	spec_json_write_given(&j, "operation", exec->operation);
	spec_json_write_given(&j, "detail", exec->detail);
	jsonw_object_end(&j);
}

static const struct spec_json_key exec_keys[] = {
	{"argv", SPEC_JSON_WORDS, offsetof(struct spec_exec, argv)},
	{"command", SPEC_JSON_TEXT, offsetof(struct spec_exec, command)},
	{"cwd", SPEC_JSON_TEXT, offsetof(struct spec_exec, cwd)},
	{"env", SPEC_JSON_WORDS, offsetof(struct spec_exec, env)},
	{"user", SPEC_JSON_TEXT, offsetof(struct spec_exec, user)},
	{"timeout_ms", SPEC_JSON_COUNT, offsetof(struct spec_exec, timeout_ms)},
	{"terminal", SPEC_JSON_BOOL, offsetof(struct spec_exec, terminal)},
	{"rows", SPEC_JSON_U16, offsetof(struct spec_exec, rows)},
	{"columns", SPEC_JSON_U16, offsetof(struct spec_exec, columns)},
	{"has_stdin", SPEC_JSON_BOOL, offsetof(struct spec_exec, has_stdin)},
	{"detach", SPEC_JSON_BOOL, offsetof(struct spec_exec, detach)},
	{"source", SPEC_JSON_TEXT, offsetof(struct spec_exec, source)},
	{"via", SPEC_JSON_TEXT, offsetof(struct spec_exec, via)},
	{"actor", SPEC_JSON_TEXT, offsetof(struct spec_exec, actor)},
	{"operation", SPEC_JSON_TEXT, offsetof(struct spec_exec, operation)},
	{"detail", SPEC_JSON_TEXT, offsetof(struct spec_exec, detail)},
	{NULL},
};

int spec_exec_read(struct slice json, struct spec_exec **ret_exec, struct err *err)
{
	scoped(spec_exec) struct spec_exec *exec = spec_exec_new();
	scoped_json json_t *root = NULL;
	int r;

	r = spec_json_parse(json, &root, err);
	if (r == 0)
		r = spec_json_read(exec, exec_keys, root, err);
	if (r == 0 && !exec->command == (exec->argv.n == 0))
		r = err_set(err, -EINVAL, "want either 'command' or an 'argv' that is not empty");
	if (r < 0)
		return err_wrap(err, r, "exec");
	*ret_exec = take(&exec);
	return 0;
}

static bool has_variable(const struct spec_words *env, const char *pair)
{
	size_t n = strcspn(pair, "=");

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->items[i], pair, n) == 0 && env->items[i][n] == '=')
			return true;
	return false;
}

static void set_variable(struct spec_words *env, const char *name, const char *value)
{
	scoped_mem char *pair = mem_printf("%s=%s", name, value);
	size_t n = strlen(name) + 1;

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->items[i], pair, n) == 0) {
			explicit_bzero(env->items[i], strlen(env->items[i]));
			free(env->items[i]);
			env->items[i] = take(&pair);
			return;
		}
	spec_words_add(env, pair);
}

void spec_exec_inherit(struct spec_exec *exec, const struct spec *spec)
{
	if (!exec->user)
		exec->user = mem_dup(spec->user);
	for (size_t i = 0; i < spec->env.n; i++)
		if (!has_variable(&exec->env, spec->env.items[i]))
			spec_words_add(&exec->env, spec->env.items[i]);
	if (spec->network.control_plane && !has_variable(&exec->env, PLANE_VARIABLE))
		spec_words_add(&exec->env, PLANE_VARIABLE);
	for (size_t i = 0; i < spec->network.n_secrets; i++)
		if (spec->network.secrets[i].stand_in)
			set_variable(&exec->env, spec->network.secrets[i].name,
				spec->network.secrets[i].stand_in);
}
