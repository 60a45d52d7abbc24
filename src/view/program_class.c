/* SPDX-License-Identifier: Apache-2.0 */
#include "view/program_class.h"

#include <ctype.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

static const char *const shells[] = {
	"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"};

static const char *const tools[] = {"make", "gmake", "ninja", "meson", "cmake", "ctest", "scons",
	"bazel", "buck", "gradle", "mvn", "ant", "cargo", "rustc", "rustup", "go", "gcc", "cc",
	"c++", "g++", "clang", "clang++", "collect2", "ld", "ccache", "distcc", "dpkg", "apt",
	"apt-get", "aptitude", "dpkg-buildpackage", "debootstrap", "pip", "pip3", "pipx", "uv",
	"poetry", "pdm", "hatch", "conda", "npm", "npm-cli", "npx", "npx-cli", "yarn", "pnpm",
	"corepack", "git", "ssh", "scp", "rsync", "tar", "find", "xargs", "parallel", "watch",
	"entr", "pytest", "py.test", "unittest", "tox", "nox", "jest", "vitest", "mocha", "tsc",
	"webpack", "vite", "rollup", "pre-commit", "configure", "bundle", "gem", "rake", "composer",
	"strace", "gdb", "valgrind", "perf", "venv", "ensurepip", "setup", "build", "man", "less",
	"vim", "tmux", "screen", "docker", "podman"};

static const char *const agents[] = {"claude", "claude-code", "codex", "gemini", "gemini-cli",
	"qwen", "qwen-code", "opencode", "copilot", "pi", "pi-coding-agent", "aider", "goose",
	"cursor-agent", "amp", "crush", "cline", "openhands", "swe-agent", "sweagent", "plandex",
	"droid", "kimi", "auggie"};

static const char *const interpreters[] = {"python", "python2", "python3", "pypy", "pypy3", "node",
	"nodejs", "bun", "deno", "ruby", "perl", "php", "tsx", "ts-node"};

/* Folders that say nothing about the program whose script lies in them, and such scripts. */
static const char *const dull[] = {"dist", "bin", "lib", "build", "src", "out", "index", "cli",
	"main", "__main__", "start", "run", "bundle"};

/* What starts another program and stands for it. */
static const struct wrapper {
	const char *name;
	const char *values; /* short options with a value behind them; NULL: behind_dashes() */
	int positional;     /* arguments of its own before the command */
} wrappers[] = {
	{"env", "uCS", 0},
	{"timeout", "sk", 1},
	{"nice", "n", 0},
	{"ionice", "cnt", 0},
	{"nohup", "", 0},
	{"setsid", "", 0},
	{"stdbuf", "ioe", 0},
	{"chrt", "TPD", 1},
	{"taskset", "", 1},
	{"sudo", "ugCDRTprtU", 0},
	{"doas", "uCa", 0},
	{"time", "fo", 0},
	{"tini", "pe", 0},
	{"dumb-init", "r", 0},
	{"catatonit", "", 0},
	{"bwrap", NULL, 0},
	{"codex-linux-sandbox", NULL, 0},
};

static bool is_in(struct slice name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (slice_is(name, list[i]))
			return true;
	return false;
}

struct slice program_class_base(struct slice path)
{
	size_t at = path.len;

	while (at > 0 && path.p[at - 1] != '/')
		at--;
	return (struct slice){.p = path.p + at, .len = path.len - at};
}

/* python3.11 is python3: the version behind a name goes. */
static struct slice without_version(struct slice name)
{
	size_t end = name.len;

	while (end > 0 && (isdigit((unsigned char)name.p[end - 1]) || name.p[end - 1] == '.'))
		end--;
	for (size_t i = end; i < name.len; i++)
		if (name.p[i] == '.')
			return (struct slice){.p = name.p, .len = i};
	return name;
}

static struct slice without_extension(struct slice name)
{
	static const char *const extensions[] = {
		".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".sh"};

	for (size_t i = 0; i < N(extensions); i++)
		if (slice_ends(name, extensions[i]) && name.len > strlen(extensions[i]))
			name.len -= strlen(extensions[i]);
	return name;
}

static struct slice own_name(const struct event_list *argv, struct slice path)
{
	struct slice typed = argv->n ? program_class_base(argv->items[0]) : (struct slice){0};
	struct slice file = program_class_base(path);

	if (slice_starts(typed, "-")) /* a login shell */
		typed = (struct slice){.p = typed.p + 1, .len = typed.len - 1};
	/* One file of many names. */
	if (file.len == 0 || slice_is(file, "busybox") || slice_is(file, "toybox") ||
		slice_is(file, "coreutils"))
		return typed;
	return file;
}

bool program_class_is_interpreter(struct slice path)
{
	return is_in(without_version(program_class_base(path)), interpreters, N(interpreters));
}

/* Whether the option takes the next argument as its value. */
static bool takes_value(struct slice option)
{
	static const char *const with_value[] = {"-W", "-X", "-r", "--require", "--import",
		"--loader", "-I", "--experimental-loader", "--env-file", "-C", "--conditions",
		"-L"};

	return is_in(option, with_value, N(with_value));
}

struct slice program_class_script(const struct event_list *argv, struct slice path)
{
	if (!program_class_is_interpreter(own_name(argv, path)))
		return (struct slice){0};
	for (size_t i = 1; i < argv->n; i++) {
		struct slice arg = argv->items[i];

		if (slice_is(arg, "-m") && i + 1 < argv->n)
			return argv->items[i + 1];
		if (slice_is(arg, "-c") || slice_is(arg, "-e") || slice_is(arg, "-p") ||
			slice_is(arg, "--eval") || slice_is(arg, "--print") || slice_is(arg, "-"))
			break;
		if (takes_value(arg)) {
			i++;
			continue;
		}
		if (!slice_starts(arg, "-") && !(slice_is(arg, "run") && i == 1))
			return arg;
	}
	return (struct slice){0};
}

/* The last part of a script's path that says something: claude-code in .../claude-code/dist/cli.js. */
static struct slice telling_part(struct slice script)
{
	struct slice rest = script, first = without_extension(program_class_base(script)),
		     name = first;

	while (is_in(name, dull, N(dull))) {
		size_t used = program_class_base(rest).len;

		if (rest.len <= used + 1)
			return first;
		rest.len -= used + 1;
		name = program_class_base(rest);
		if (name.len == 0)
			return first;
	}
	return name;
}

struct slice program_class_name(const struct event_list *argv, struct slice path)
{
	struct slice script = program_class_script(argv, path);
	size_t at;

	if (script.len)
		return telling_part(script);
	if (program_class_is_shell(own_name(argv, path)) &&
		program_class_shell(argv, 0, &at) == PROGRAM_CLASS_SCRIPT)
		return without_extension(program_class_base(argv->items[at]));
	return own_name(argv, path);
}

bool program_class_is_shell(struct slice name)
{
	if (slice_starts(name, "-"))
		name = (struct slice){.p = name.p + 1, .len = name.len - 1};
	return is_in(name, shells, N(shells));
}

bool program_class_is_tool(struct slice name)
{
	/* Compilers carry their target before and their version behind: x86_64-linux-gnu-gcc-12. */
	while (name.len &&
		(isdigit((unsigned char)name.p[name.len - 1]) || name.p[name.len - 1] == '-'))
		name.len--;
	if (is_in(name, tools, N(tools)) || is_in(without_version(name), tools, N(tools)))
		return true;
	return slice_ends(name, "-linux-gnu-gcc") || slice_ends(name, "-linux-gnu-g++");
}

bool program_class_is_agent(struct slice name)
{
	return is_in(name, agents, N(agents));
}

static const struct wrapper *find_wrapper(struct slice name)
{
	for (size_t i = 0; i < N(wrappers); i++)
		if (slice_is(name, wrappers[i].name))
			return &wrappers[i];
	return NULL;
}

static bool is_assignment(struct slice arg)
{
	const char *sign = arg.len ? memchr(arg.p, '=', arg.len) : NULL;

	if (!sign || sign == arg.p || isdigit((unsigned char)arg.p[0]))
		return false;
	for (const char *at = arg.p; at < sign; at++)
		if (!isalnum((unsigned char)*at) && *at != '_')
			return false;
	return true;
}

/* An agent's inner sandbox, with options of its own up to "--": a wrapper where a shell or a wrapper stands behind
 * them. Anything else is what somebody tries the sandbox with. */
static size_t behind_dashes(const struct event_list *argv, size_t from)
{
	size_t i = from + 1;
	struct slice name;

	while (i < argv->n && !slice_is(argv->items[i], "--"))
		i++;
	if (++i >= argv->n)
		return 0;
	name = program_class_base(argv->items[i]);
	return program_class_is_shell(name) || find_wrapper(name) ? i : 0;
}

size_t program_class_unwrap(const struct event_list *argv, size_t from)
{
	const struct wrapper *wrapper;
	int positional;
	size_t i = from + 1;

	if (from >= argv->n)
		return 0;
	wrapper = find_wrapper(program_class_base(argv->items[from]));
	if (!wrapper)
		return 0;
	if (!wrapper->values)
		return behind_dashes(argv, from);
	positional = wrapper->positional;
	for (; i < argv->n; i++) {
		struct slice arg = argv->items[i];

		if (slice_is(arg, "--"))
			continue;
		if (arg.len > 1 && arg.p[0] == '-') {
			/* Only "-u NAME" takes the next argument; "-uNAME" and "--unset=NAME" do not. */
			i += arg.len == 2 && strchr(wrapper->values, arg.p[1]);
			continue;
		}
		if (is_assignment(arg) || positional-- > 0)
			continue;
		return i;
	}
	return 0;
}

enum program_class_shell program_class_shell(
	const struct event_list *argv, size_t from, size_t *ret_at)
{
	bool has_string = false;
	size_t i = from + 1;

	for (; i < argv->n; i++) {
		struct slice arg = argv->items[i];
		char last = arg.len ? arg.p[arg.len - 1] : 0;

		if (arg.len < 2 || (arg.p[0] != '-' && arg.p[0] != '+'))
			break;
		if (slice_is(arg, "--")) {
			i++;
			break;
		}
		if (slice_is(arg, "--rcfile") || slice_is(arg, "--init-file"))
			i++;
		if (arg.p[1] == '-')
			continue;
		has_string |= memchr(arg.p, 'c', arg.len) != NULL;
		i += last == 'o' || last == 'O'; /* -o NAME */
	}
	*ret_at = i;
	if (i >= argv->n)
		return PROGRAM_CLASS_SESSION;
	return has_string ? PROGRAM_CLASS_STRING : PROGRAM_CLASS_SCRIPT;
}
