/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line finds out for network options: sets, and values of secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/network_sets.h"
#include "cli/secret_values.h"
#include "spec/spec_network_parse.h"
#include "util/mem.h"
#include "util/path.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static char folder[] = "/tmp/cloche-network-XXXXXX";

static int make_folder(void **state)
{
	return mkdtemp(folder) ? setenv("HOME", folder, 1) : -1;
}

static int remove_folder(void **state)
{
	return path_remove_all(AT_FDCWD, folder);
}

static char *write_file(const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", folder, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

static void test_rule_of_url(void **state)
{
	static const struct {
		const char *url, *want; /* NULL: none */
	} cases[] = {
		{"https://packages.example/npm/", "packages.example:443"},
		{"http://packages.example", "packages.example:80"},
		{"https://packages.example:8443/x", "packages.example:8443"},
		{"https://me:p@ss@packages.example/x", "packages.example:443"},
		{"https://packages.example\nnext", "packages.example:443"},
		{"https://10.0.0.8:4873/", "10.0.0.8:4873"},
		{"http://[2001:db8::1]:4873/", "[2001:db8::1]:4873"},
		{"https://packages.example/a@b", "packages.example:443"},
		{"ftp://packages.example", NULL},
		{"https:///x", NULL},
		{"https://*/x", NULL},
		{"https://pack ages", "pack:443"},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct str out = {0};
		bool has = network_sets_rule_of(cases[i].url, &out);

		if (has != (cases[i].want != NULL) || (has && strcmp(out.p, cases[i].want) != 0))
			fail_msg("%s: %s", cases[i].url, has ? out.p : "none");
		str_done(&out);
	}
}

static void test_sets_of_the_host(void **state)
{
	struct cli cli = {.uid = geteuid(), .gid = getegid()};
	char *npm = write_file(".npmrc",
		"# registry=https://comment.example/\nproxy=http://proxy.example:3128\n"
		"registry = "
		"https://me:x@npm.example/repo/\n@ours:registry=http://ours.example:4873\n"
		"//npm.example/repo/:_authToken=sesame\n");
	struct spec_network net;
	struct err err = {0};
	const struct spec_set *set;

	unsetenv("NPM_CONFIG_REGISTRY");
	unsetenv("npm_config_registry");
	spec_network_init(&net);
	spec_words_add(&net.allow, "@npm");
	spec_words_add(&net.allow, "@mine");
	spec_words_add(&net.deny, "@npm");
	spec_words_add(&spec_network_add_set(&net, "@mine")->rules, "a.example");
	if (network_sets_open(&net, &cli, &err) < 0)
		fail_msg("%s", err.msg);
	set = spec_network_set(&net, "@npm");
	assert_true(set->rules.n >= 2); /* this host may have more */
	assert_string_equal(set->rules.items[0], "npm.example:443");
	assert_string_equal(set->rules.items[1], "ours.example:4873");
	assert_int_equal(spec_network_set(&net, "@mine")->rules.n, 1);
	spec_network_done(&net);
	/* A pipe where a file should be is passed over, not waited for. */
	unlink(npm);
	assert_int_equal(mkfifo(npm, 0600), 0);
	setenv("NPM_CONFIG_REGISTRY", "https://env.example/", 1);
	spec_network_init(&net);
	spec_words_add(&net.allow, "@npm");
	assert_int_equal(network_sets_open(&net, &cli, &err), 0);
	assert_string_equal(spec_network_set(&net, "@npm")->rules.items[0], "env.example:443");
	spec_network_done(&net);
	unsetenv("NPM_CONFIG_REGISTRY");
	free(npm);
}

static void test_unknown_set(void **state)
{
	static const char *const names[] = {"@nosuch", "@", "@../sets/github", "@."};
	struct cli cli = {.uid = geteuid(), .gid = getegid()};

	for (size_t i = 0; i < LEN(names); i++) {
		struct spec_network net;
		struct err err = {0};

		spec_network_init(&net);
		spec_words_add(&net.allow, names[i]);
		assert_int_equal(network_sets_open(&net, &cli, &err), -ENOENT);
		assert_non_null(strstr(err.msg, "there is no set"));
		spec_network_done(&net);
	}
}

static void test_secret_values(void **state)
{
	char *file = write_file("key", "sesame-from-a-file\r\n");
	char *names = mem_printf("FILE_KEY=%s", file);
	struct spec_words files = {0};
	struct spec_network net;
	struct err err = {0};

	spec_network_init(&net);
	setenv("ENV_KEY", "sesame-of-the-environment", 1);
	setenv("FILE_KEY", "not-this-one", 1);
	assert_int_equal(spec_network_parse_secret("ENV_KEY@a.example", &net, &err), 0);
	assert_int_equal(spec_network_parse_secret("FILE_KEY@a.example", &net, &err), 0);
	spec_words_add(&files, names);
	if (secret_values_fill(&net, &(struct secret_sources){.files = &files}, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(net.secrets[0].value, "sesame-of-the-environment");
	assert_string_equal(net.secrets[1].value, "sesame-from-a-file");
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(strlen(net.secrets[i].stand_in), strlen(net.secrets[i].value));
		assert_string_not_equal(net.secrets[i].stand_in, net.secrets[i].value);
	}
	spec_words_done(&files);
	spec_network_done(&net);
	free(names);
	free(file);
}

/* What is handed over counts alone: a spec of somebody else's must not reach our environment. */
static void test_hidden_values(void **state)
{
	char *file = write_file("hidden",
		"{\"secrets\":[{\"name\":\"HERE\",\"value\":\"sesame-handed-over\"}],"
		"\"upstream_proxy\":{\"user\":\"me\",\"password\":\"sesame\"}}");
	struct spec_words files = {0};
	struct secret_sources sources = {.files = &files, .hidden = file};
	struct spec_network net;
	struct err err = {0};

	spec_network_init(&net);
	setenv("HERE", "not-this-one", 1);
	setenv("THERE", "sesame-of-the-environment", 1);
	assert_int_equal(spec_network_parse_secret("HERE@a.example", &net, &err), 0);
	if (secret_values_fill(&net, &sources, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(net.secrets[0].value, "sesame-handed-over");
	assert_string_equal(net.proxy_password, "sesame");
	assert_int_equal(spec_network_parse_secret("THERE@a.example", &net, &err), 0);
	assert_int_equal(secret_values_fill(&net, &sources, &err), -ENOENT);
	assert_null(net.secrets[1].value);
	assert_string_equal(err.msg, "secret THERE has no value: none was handed over");
	spec_network_done(&net);
	free(file);
}

static void test_secret_faults(void **state)
{
	static const struct {
		const char *value, *file, *want; /* file: its text */
	} cases[] = {
		{NULL, NULL, "secret KEY has no value: the environment has no variable KEY"},
		{"", NULL, "secret KEY has no value"},
		{"sesame", NULL, "secret KEY: its value is shorter than 8 bytes"},
		{"sesame\nsesame", NULL, "secret KEY: its value holds bytes that no header may"},
		{NULL, "", "holds no value"},
		{NULL, "\n", "holds no value"},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		char *file = cases[i].file ? write_file("key", cases[i].file) : NULL;
		char *word = file ? mem_printf("KEY=%s", file) : NULL;
		struct spec_words files = {0};
		struct spec_network net;
		struct err err = {0};

		unsetenv("KEY");
		if (cases[i].value)
			setenv("KEY", cases[i].value, 1);
		spec_network_init(&net);
		assert_int_equal(spec_network_parse_secret("KEY@a.example", &net, &err), 0);
		if (word)
			spec_words_add(&files, word);
		assert_true(secret_values_fill(
				    &net, &(struct secret_sources){.files = &files}, &err) < 0);
		if (!strstr(err.msg, cases[i].want) || strstr(err.msg, "sesame"))
			fail_msg("%s", err.msg);
		spec_words_done(&files);
		spec_network_done(&net);
		free(word);
		free(file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rule_of_url),
		cmocka_unit_test(test_sets_of_the_host),
		cmocka_unit_test(test_unknown_set),
		cmocka_unit_test(test_secret_values),
		cmocka_unit_test(test_hidden_values),
		cmocka_unit_test(test_secret_faults),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
