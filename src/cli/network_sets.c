/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/network_sets.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/caller_tool.h"
#include "spec/spec_network_parse.h"
#include "spec/spec_rule.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/program.h"
#include "util/scoped.h"

#define CONFIG_MAX (256 << 10) /* bytes of a file of settings */
#define RULES_MAX  256         /* of one set */

/* Where a tool keeps what registries it uses. */
struct tool {
	const char *set;
	const char *const *variables;
	const char *const *files; /* "~/" is the caller's home; a final / means all files in it */
	const char *const *keys; /* parts of the names of settings that hold URLs; NULL: any line */
	const char *const *command; /* prints its default where nothing is set; NULL: none */
	const char *mark; /* what stands before the URL in that; NULL: nothing else is printed */
};

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct tool *const tools[] = {
	&(const struct tool){"@npm", LIST("NPM_CONFIG_REGISTRY", "npm_config_registry"),
		LIST("~/.npmrc", "/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc"),
		LIST("registry"), LIST("npm", "config", "get", "registry"), NULL},
	&(const struct tool){"@pip",
		LIST("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
		LIST("~/.config/pip/pip.conf", "~/.pip/pip.conf", "/etc/pip.conf",
			"/etc/xdg/pip/pip.conf"),
		LIST("index-url", "find-links"), LIST("pip3", "install", "--help"), "(default"},
	&(const struct tool){"@apt", LIST(NULL),
		LIST("/etc/apt/sources.list", "/etc/apt/sources.list.d/", "/etc/apt/mirrors/"),
		NULL, NULL, NULL},
};

bool network_sets_rule_of(const char *url, struct str *out)
{
	bool is_tls = strncmp(url, "https://", 8) == 0;
	const char *host, *at, *end;
	scoped_mem char *place = NULL;
	struct spec_rule rule;

	if (!is_tls && strncmp(url, "http://", 7) != 0)
		return false;
	host = url + (is_tls ? 8 : 7);
	end = host + strcspn(host, "/?#\"' \t\r\n,)");
	for (at = host; at < end; at++)
		if (*at == '@')
			host = at + 1;
	place = mem_copy(host, (size_t)(end - host));
	/* A path or a method is nothing that a place has. */
	if (strchr(place, '*') || spec_rule_parse(place, &rule, NULL) < 0)
		return false;
	str_reset(out);
	str_printf(out, rule.port ? "%s" : "%s:%d", place, is_tls ? 443 : 80);
	spec_rule_done(&rule);
	return true;
}

static void add_rule(struct spec_words *rules, const char *rule)
{
	for (size_t i = 0; i < rules->n; i++)
		if (strcmp(rules->items[i], rule) == 0)
			return;
	if (rules->n < RULES_MAX)
		spec_words_add(rules, rule);
}

/* Whether mark stands before at, with nothing but space between them. */
static bool is_behind(const char *text, const char *at, const char *mark)
{
	size_t n = strlen(mark);

	while (at > text && isspace((unsigned char)at[-1]))
		at--;
	return (size_t)(at - text) >= n && strncmp(at - n, mark, n) == 0;
}

/* Every URL of a text. mark: only those behind it. */
static void add_urls(struct spec_words *rules, const char *text, const char *mark)
{
	scoped_str struct str rule = {0};

	for (const char *at = text; (at = strstr(at, "http")); at += 4)
		if ((!mark || is_behind(text, at, mark)) && network_sets_rule_of(at, &rule))
			add_rule(rules, rule.p);
}

static bool is_wanted(const char *line, const char *const *keys)
{
	scoped_mem char *key = mem_copy(line, strcspn(line, strchr(line, '=') ? "=" : ":"));

	for (size_t i = 0; keys && keys[i]; i++)
		if (strstr(key, keys[i]))
			return true;
	return !keys;
}

/* Lines "key = value", "key: value" or words; one that is indented goes on with the value above. */
static void add_settings(struct spec_words *rules, char *text, const char *const *keys)
{
	char *line;
	bool wanted = false;

	while ((line = strsep(&text, "\n"))) {
		const char *at = line + strspn(line, " \t");

		if (*at == '#' || *at == ';')
			continue;
		if (at == line)
			wanted = is_wanted(line, keys);
		if (wanted)
			add_urls(rules, line, NULL);
	}
}

/* What is there and is a file: whoever owns a home may have put a pipe there. */
static void add_file(struct spec_words *rules, const char *path, const char *const *keys)
{
	scoped_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	scoped_str struct str text = {0};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		fdio_read_all(fd, CONFIG_MAX, &text) < 0 || !text.p)
		return;
	add_settings(rules, text.p, keys);
}

static void add_folder(struct spec_words *rules, const char *path, const char *const *keys)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		scoped_mem char *file = mem_printf("%s%s", path, entry->d_name);

		if (entry->d_name[0] != '.')
			add_file(rules, file, keys);
	}
	if (dir)
		closedir(dir);
}

static void ask_settings(struct spec_words *rules, const struct tool *tool, const char *home)
{
	for (size_t i = 0; tool->variables[i]; i++) {
		const char *value = getenv(tool->variables[i]);

		if (value)
			add_urls(rules, value, NULL);
	}
	for (size_t i = 0; tool->files[i]; i++) {
		const char *name = tool->files[i];
		bool is_home = *name == '~';
		scoped_mem char *path = mem_printf("%s%s", is_home ? home : "", name + is_home);

		if (is_home && !*home)
			continue;
		if (path[strlen(path) - 1] == '/')
			add_folder(rules, path, tool->keys);
		else
			add_file(rules, path, tool->keys);
	}
}

static void ask_tool(struct spec_words *rules, const struct tool *tool, const struct cli *cli)
{
	scoped_str struct str text = {0};

	if (tool->command && caller_tool_output(cli, tool->command, &text) == 0 && text.p)
		add_urls(rules, text.p, tool->mark);
}

static int read_ours(struct spec_words *rules, const char *name, struct err *err)
{
	scoped_mem char *file = mem_printf("sets/%s", name + 1);
	scoped_str struct str path = {0}, text = {0};
	char *rest, *line;
	int r = program_find_data(file, &path, err);

	if (r == 0)
		r = fdio_read_file(AT_FDCWD, path.p, CONFIG_MAX, &text);
	if (r < 0)
		return r;
	rest = text.p;
	while (rest && (line = strsep(&rest, "\n")))
		if (*line && *line != '#')
			add_rule(rules, line);
	return 0;
}

static int fill(struct spec_words *rules, const char *name, const struct cli *cli, struct err *err)
{
	scoped_str struct str home = {0};

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		if (strcmp(tools[i]->set, name) != 0)
			continue;
		cli_home(cli, &home);
		ask_settings(rules, tools[i], home.p ? home.p : "");
		if (rules->n == 0)
			ask_tool(rules, tools[i], cli);
		if (rules->n == 0)
			return err_set(err, -ENOENT,
				"set '%s': this host's settings of %s name no registry: name the "
				"hosts themselves",
				name, name + 1);
		return 0;
	}
	if (strchr(name, '/') || name[1] == '.' || read_ours(rules, name, err) < 0)
		return err_set(err, -ENOENT,
			"there is no set '%s': sets are @anthropic, @openai, @google, @github, "
			"@npm, @pip and @apt",
			name);
	return 0;
}

static int open_words(struct spec_network *net, const struct spec_words *words,
	const struct cli *cli, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < words->n; i++)
		if (*words->items[i] == '@' && !spec_network_set(net, words->items[i]))
			r = fill(&spec_network_add_set(net, words->items[i])->rules,
				words->items[i], cli, err);
	return r;
}

int network_sets_open(struct spec_network *net, const struct cli *cli, struct err *err)
{
	int r = open_words(net, &net->allow, cli, err);

	return r < 0 ? r : open_words(net, &net->deny, cli, err);
}
