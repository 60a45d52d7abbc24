/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/runs_on_host.h"

#include <jansson.h>
#include <string.h>

/* A pattern without slash is a name in any folder; with one at the end, everything in such a folder; otherwise
 * the last parts of a path. A * at the end stands for the rest of a name. */
static const struct {
	const char *pattern, *reason;
} rules[] = {
	{".git/info/attributes", "git filter"},
	{".git", "git folder"},
	{".gitmodules", "git submodules"},
	{".husky/", "git hook"},
	{".githooks/", "git hook"},
	{".pre-commit-config.yaml", "git hook"},
	{"lefthook.yml", "git hook"},
	{".lefthook.yml", "git hook"},
	{".envrc", "shell set-up"},
	{".autoenv.zsh", "shell set-up"},
	{"mise.toml", "shell set-up"},
	{".mise.toml", "shell set-up"},
	{".vscode/tasks.json", "editor task"},
	{".vscode/launch.json", "editor task"},
	{".vscode/settings.json", "editor setting"},
	{".vscode/extensions.json", "editor setting"},
	{".code-workspace", "editor setting"},
	{".idea/", "editor setting"},
	{".fleet/", "editor setting"},
	{".zed/", "editor setting"},
	{".nvim.lua", "editor setting"},
	{".nvimrc", "editor setting"},
	{".vimrc", "editor setting"},
	{".exrc", "editor setting"},
	{".dir-locals.el", "editor setting"},
	{".devcontainer/", "editor container"},
	{".devcontainer.json", "editor container"},
	{".claude/settings*", "agent setting"},
	{".claude/hooks/", "agent setting"},
	{".mcp.json", "agent setting"},
	{".cursor/mcp.json", "agent setting"},
	{".cursor/hooks.json", "agent setting"},
	{".gemini/settings.json", "agent setting"},
	{".codex/", "agent setting"},
	{".qwen/settings.json", "agent setting"},
	{"opencode.json*", "agent setting"},
	{".github/workflows/", "CI"},
	{".github/actions/", "CI"},
	{".gitlab-ci.yml", "CI"},
	{".gitlab/ci/", "CI"},
	{".circleci/", "CI"},
	{".buildkite/", "CI"},
	{".forgejo/workflows/", "CI"},
	{".gitea/workflows/", "CI"},
	{".travis.yml", "CI"},
	{".drone.yml", "CI"},
	{".woodpecker.y*", "CI"},
	{".woodpecker/", "CI"},
	{".cirrus.yml", "CI"},
	{"azure-pipelines.yml", "CI"},
	{"bitbucket-pipelines.yml", "CI"},
	{"appveyor.yml", "CI"},
	{"Jenkinsfile", "CI"},
	{"package.json", "package script"},
	{".npmrc", "package tool setting"},
	{".pnpmfile.cjs", "package tool setting"},
	{".yarnrc*", "package tool setting"},
	{".yarn/plugins/", "package tool setting"},
	{".yarn/releases/", "package tool setting"},
	{".cargo/config*", "package tool setting"},
};

/* Whether the pattern's parts stand at this place of the path, and end it (or a folder pattern leaves more). */
static bool matches_here(const char *at, const char *pattern, bool whole)
{
	size_t n = strlen(pattern), len = strlen(at);

	if (whole && strncmp(at, pattern, len) == 0 && pattern[len] == '/')
		return true;
	if (pattern[n - 1] == '/')
		return strncmp(at, pattern, n) == 0 && at[n];
	if (pattern[n - 1] == '*')
		return strncmp(at, pattern, n - 1) == 0 && !strchr(at + n - 1, '/');
	return strcmp(at, pattern) == 0;
}

/* Hooks and configuration. Submodules and worktrees keep a git folder each inside the first one's. */
static bool is_inner_git(const char *path)
{
	const char *git = strncmp(path, ".git/", 5) == 0 ? path : strstr(path, "/.git/");
	const char *name = strrchr(path, '/');

	if (!git)
		return false;
	if (slice_ends(slice_of(name), ".sample"))
		return false; /* git puts them there to be copied, and runs none */
	return strstr(git + 1, "/hooks/") || strcmp(name, "/config") == 0 ||
	       strcmp(name, "/config.worktree") == 0;
}

static bool is_in_modules(const char *path)
{
	return strncmp(path, "node_modules/", 13) == 0 || strstr(path, "/node_modules/");
}

bool runs_on_host_is_package(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash ? slash + 1 : path, "package.json") == 0;
}

bool runs_on_host_is_dependency(const char *path)
{
	return is_in_modules(path) && runs_on_host_is_package(path) && !is_inner_git(path);
}

/* No forge, editor or shell looks into a package that others brought; git and the package tool do. */
static const char *find_in_modules(const char *path)
{
	const char *name = strrchr(path, '/');

	if (runs_on_host_is_package(path))
		return "install script";
	if (slice_ends(slice_of(path), "/.git/info/attributes"))
		return "git filter";
	return strcmp(name, "/.git") == 0 ? "git folder" : NULL;
}

const char *runs_on_host_reason(const char *path, bool whole)
{
	if (is_inner_git(path))
		return strstr(path, "/hooks/") ? "git hook" : "git configuration";
	if (is_in_modules(path))
		return find_in_modules(path);
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
			if (matches_here(at, rules[i].pattern, whole))
				return rules[i].reason;
	}
	return NULL;
}

static bool read_scripts(struct slice text, json_t **ret_root, json_t **ret_scripts)
{
	json_error_t why;

	*ret_root = *ret_scripts = NULL;
	if (text.len == 0)
		return true;
	*ret_root = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES, &why);
	*ret_scripts = json_object_get(*ret_root, "scripts");
	return json_is_object(*ret_root);
}

static bool differs(const json_t *a, const json_t *b)
{
	return (!a != !b) || (a && !json_equal(a, b));
}

/* All that a package tool runs of a package that is not the user's own. */
static bool install_scripts_differ(const json_t *a, const json_t *b)
{
	static const char *const names[] = {"preinstall", "install", "postinstall"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (differs(json_object_get(a, names[i]), json_object_get(b, names[i])))
			return true;
	return false;
}

bool runs_on_host_scripts_differ(struct slice before, struct slice after, bool is_dependency)
{
	json_t *a, *b, *a_scripts, *b_scripts;
	bool known_a = read_scripts(before, &a, &a_scripts);
	bool known_b = read_scripts(after, &b, &b_scripts);
	bool differ = !known_a || !known_b ||
	              (is_dependency ? install_scripts_differ(a_scripts, b_scripts)
				     : differs(a_scripts, b_scripts));

	json_decref(a);
	json_decref(b);
	return differ;
}
