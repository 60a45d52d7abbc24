/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of the user's own; the e2e tests use those that come with Cloche. */
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

#include "cli/agent_profile.h"
#include "spec/spec_network_parse.h"
#include "util/mem.h"
#include "util/path.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static char folder[] = "/tmp/cloche-profile-XXXXXX";

static int make_folder(void **state)
{
	scoped_mem char *profiles = NULL, *own = NULL;

	if (!mkdtemp(folder) || setenv("HOME", folder, 1) < 0)
		return -1;
	profiles = mem_printf("%s/.config/cloche/profiles", folder);
	own = mem_printf("%s/.mine", folder);
	return path_make_all(profiles, 0755) < 0 || mkdir(own, 0755) < 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
	return path_remove_all(AT_FDCWD, folder);
}

static void write_profile(const char *text)
{
	scoped_mem char *path = mem_printf("%s/.config/cloche/profiles/mine.json", folder);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static struct spec *apply(enum spec_net net, const char *name, const char *program, int want)
{
	struct cli cli = {.uid = geteuid(), .gid = getegid()};
	struct spec *spec = spec_new();
	struct err err = {0};
	int r;

	spec->network.net = net;
	spec_words_add(&spec->env, "SET=before");
	r = agent_profile_apply(spec, name, program, &cli, &err);
	if (r != want)
		fail_msg("%s, %s: %d, %s", name ? name : "-", program ? program : "-", r, err.msg);
	return spec;
}

static const char whole[] =
	"{\"folders\":[\"~/.mine\",\"~/.not-there\"],\"secrets\":[\"MY_KEY@a.example\","
	"\"NO_KEY@a.example\"],\"models\":[\"m.example\"],\"allow\":[\"a.example\",\"@github\"],"
	"\"env\":[\"SET=profile\","
	"\"MORE=profile\"],\"tls\":[\"p.example=passthrough\"],\"notes\":[\"a note\"]}";

static void test_whole(void **state)
{
	scoped_mem char *own = mem_printf("%s/.mine", folder);
	struct spec *spec;

	write_profile(whole);
	setenv("MY_KEY", "sesame-sesame", 1);
	unsetenv("NO_KEY");
	spec = apply(SPEC_NET_ALLOW, "mine", NULL, 0);
	assert_string_equal(spec->profile, "mine");
	assert_string_equal(spec->agent, "mine");
	assert_int_equal(spec->n_mounts, 1);
	assert_string_equal(spec->mounts[0].host, own);
	assert_string_equal(spec->mounts[0].guest, "/root/.mine");
	assert_int_equal(spec->mounts[0].mode, SPEC_MOUNT_COW);
	assert_true(spec->mounts[0].profile);
	assert_int_equal(spec->network.n_secrets, 1);
	assert_string_equal(spec->network.secrets[0].name, "MY_KEY");
	assert_int_equal(spec->network.secrets[0].pass.n, 1);
	assert_string_equal(spec->network.secrets[0].pass.items[0], "m.example");
	assert_int_equal(spec->network.allow.n, 2);
	assert_int_equal(spec->env.n, 2);
	assert_string_equal(spec->env.items[0], "SET=before");
	assert_string_equal(spec->env.items[1], "MORE=profile");
	assert_int_equal(spec->network.tls_passthrough.n, 1);
	spec_free(spec);
	/* With open a rule would open private places of that name; without a network no key goes in. */
	spec = apply(SPEC_NET_OPEN, "mine", NULL, 0);
	assert_int_equal(spec->network.allow.n, 0);
	assert_int_equal(spec->network.n_secrets, 1);
	spec_free(spec);
	spec = apply(SPEC_NET_NONE, "mine", NULL, 0);
	assert_int_equal(spec->network.n_secrets, 0);
	spec_free(spec);
}

static void test_who_picks(void **state)
{
	static const struct {
		const char *name, *program;
		int want;
		bool is_used;
	} cases[] = {
		{NULL, "mine", 0, true},
		{NULL, "/usr/local/bin/mine", 0, true},
		{NULL, "mine.sh", 0, false},
		{NULL, "sh", 0, false},
		{NULL, "../mine", 0, true},
		{NULL, "", 0, false},
		{NULL, NULL, 0, false},
		{"none", "mine", 0, false},
		{"mine", "sh", 0, true},
		{"nosuch", "mine", -ENOENT, false},
		{"../profiles/mine", "mine", -ENOENT, false},
		{"", "mine", -ENOENT, false},
	};

	write_profile("{}");
	for (size_t i = 0; i < LEN(cases); i++) {
		struct spec *spec =
			apply(SPEC_NET_OPEN, cases[i].name, cases[i].program, cases[i].want);

		if (!spec->profile != !cases[i].is_used)
			fail_msg("case %zu: profile %s", i, spec->profile ? spec->profile : "-");
		spec_free(spec);
	}
}

static void test_what_was_asked_wins(void **state)
{
	struct cli cli = {.uid = geteuid(), .gid = getegid()};
	struct spec *spec = spec_new();
	struct err err = {0};

	write_profile(whole);
	setenv("MY_KEY", "sesame-sesame", 1);
	spec->network.net = SPEC_NET_ALLOW;
	spec->agent = mem_dup("reviewer");
	spec_add_mount(spec, "/srv", "/root/.mine", SPEC_MOUNT_RW, false);
	assert_int_equal(
		spec_network_parse_secret("MY_KEY@other.example", &spec->network, &err), 0);
	assert_int_equal(agent_profile_apply(spec, NULL, "mine", &cli, &err), 0);
	assert_int_equal(spec->n_mounts, 1);
	assert_string_equal(spec->mounts[0].host, "/srv");
	assert_int_equal(spec->network.n_secrets, 1);
	assert_string_equal(spec->network.secrets[0].hosts.items[0], "other.example");
	assert_string_equal(spec->agent, "reviewer");
	assert_string_equal(spec->profile, "mine");
	spec_free(spec);
}

static void test_malformed(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"", "want a JSON object"},
		{"[]", "want a JSON object"},
		{"{", "want a JSON object"},
		{"{\"folder\":[]}", "there is no key 'folder'"},
		{"{\"folders\":\"~/.mine\"}", "must be a list of texts"},
		{"{\"folders\":[1]}", "must be a list of texts"},
		{"{\"folders\":[\"/etc\"]}", "want \"~/NAME\""},
		{"{\"env\":[\"NAME\"]}", "want NAME=VALUE"},
		{"{\"tls\":[\"off\"]}", "no TLS mode"},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct cli cli = {.uid = geteuid(), .gid = getegid()};
		struct spec *spec = spec_new();
		struct err err = {0};

		write_profile(cases[i].text);
		assert_true(agent_profile_apply(spec, NULL, "mine", &cli, &err) < 0);
		if (!strstr(err.msg, cases[i].want) || !strstr(err.msg, "mine.json"))
			fail_msg("%s: %s", cases[i].text, err.msg);
		spec_free(spec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_who_picks),
		cmocka_unit_test(test_what_was_asked_wins),
		cmocka_unit_test(test_malformed),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
