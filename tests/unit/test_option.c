/* SPDX-License-Identifier: Apache-2.0 */
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

#include "cli/option.h"
#include "cli/run_options.h"
#include "cli/usage.h"
#include "cli/verb.h"
#include "util/fdio.h"
#include "util/mem.h"

#define LEN(a)   (sizeof(a) / sizeof((a)[0]))
#define ARGS_MAX 8

struct values {
	bool all, sure;
	const char *text;
	struct spec_words words;
	int64_t size;
	char called[32];
};

static int set_called(void *base, const char *value, struct err *err)
{
	struct values *v = base;

	if (value && strcmp(value, "bad") == 0)
		return err_set(err, -EINVAL, "'bad' is bad");
	(void)snprintf(v->called, sizeof(v->called), "%s", value ? value : "(none)");
	return 0;
}

static int set_early(void *base, const char *value, struct err *err)
{
	struct values *v = base;

	v->text = value;
	return 0;
}

static const struct option table[] = {
	{"all", 'a', NULL, "all", OPTION_ON, offsetof(struct values, all)},
	{"unsure", 0, NULL, "unsure", OPTION_OFF, offsetof(struct values, sure)},
	{"text", 't', "TEXT", "text", OPTION_TEXT, offsetof(struct values, text)},
	{"word", 'w', "WORD", "word", OPTION_WORDS, offsetof(struct values, words)},
	{"size", 0, "SIZE", "size", OPTION_SIZE, offsetof(struct values, size)},
	{"call", 'c', "[=how]", "call", OPTION_CALL, .set = set_called},
	{"early", 0, "TEXT", "early", OPTION_CALL, .set = set_early, .early = true},
	{"net", 'p', "RULE", "the gateway", OPTION_LATER},
	{NULL},
};
static const struct option_group groups[] = {{"Options", table}, {NULL}};

struct row {
	const char *args[ARGS_MAX];
	size_t n_before;   /* 0 is what most commands have; SIZE_MAX: options anywhere */
	const char *words; /* joined by commas; NULL: refused */
	const char *state; /* what was set, or why not */
};

static const struct row rows[] = {
	{{"x"}, SIZE_MAX, "x", ""},
	{{"-a", "x"}, SIZE_MAX, "x", "all "},
	{{"x", "-a"}, SIZE_MAX, "x", "all "},
	{{"x", "-a"}, 0, "x,-a", ""},
	{{"id", "-a", "x", "-a"}, 1, "id,x,-a", "all "},
	{{"id", "--", "-a"}, 1, "id,-a", ""},
	{{"--", "-a", "--"}, SIZE_MAX, "-a,--", ""},
	{{"-"}, SIZE_MAX, "-", ""},
	{{""}, SIZE_MAX, "", ""},
	{{"--text=a=b"}, SIZE_MAX, "", "text:a=b "},
	{{"--text", "-a"}, SIZE_MAX, "", "text:-a "},
	{{"--text="}, SIZE_MAX, "", "text: "},
	{{"-tx"}, SIZE_MAX, "", "text:x "},
	{{"-t", "x"}, SIZE_MAX, "", "text:x "},
	{{"-at", "x", "y"}, SIZE_MAX, "y", "all text:x "},
	{{"-w1", "-w", "2", "--word", "3"}, SIZE_MAX, "", "words:123 "},
	{{"--size=1K"}, SIZE_MAX, "", "size:1024 "},
	{{"--call"}, SIZE_MAX, "", "called:(none) "},
	{{"--call", "x"}, SIZE_MAX, "x", "called:(none) "},
	{{"--call=on"}, SIZE_MAX, "", "called:on "},
	{{"-ca"}, SIZE_MAX, "", "all called:(none) "},
	/* early options come first, wherever they stand: the later one has the last word */
	{{"--text", "named", "--early", "file"}, SIZE_MAX, "", "text:named "},
	{{"--unsure"}, SIZE_MAX, "", "unsure "},
	{{"--txet=1"}, SIZE_MAX, NULL, "unknown option '--txet': did you mean '--text'?"},
	{{"--wor"}, SIZE_MAX, NULL, "unknown option '--wor': did you mean '--word'?"},
	{{"--zzzzzz"}, SIZE_MAX, NULL, "unknown option '--zzzzzz'"},
	{{"-z"}, SIZE_MAX, NULL, "unknown option '-z' in '-z'"},
	{{"-az"}, SIZE_MAX, NULL, "unknown option '-z' in '-az'"},
	{{"--text"}, SIZE_MAX, NULL, "option '--text' needs a value: --text TEXT"},
	{{"-at"}, SIZE_MAX, NULL, "option '-t' needs a value: -t TEXT"},
	{{"--all=1"}, SIZE_MAX, NULL, "option '--all' takes no value"},
	{{"--size", "x"}, SIZE_MAX, NULL,
		"option '--size': 'x' is no size: want a number with K, M, G or T"},
	{{"--call=bad"}, SIZE_MAX, NULL, "option '--call': 'bad' is bad"},
	{{"--net", "x"}, SIZE_MAX, NULL, "option '--net': the gateway is not part of this version"},
	{{"--net"}, SIZE_MAX, NULL, "option '--net': the gateway is not part of this version"},
	{{"-p80"}, SIZE_MAX, NULL, "option '-p': the gateway is not part of this version"},
};

static void describe(const struct values *v, struct str *out)
{
	str_puts(out, "");
	if (v->all)
		str_puts(out, "all ");
	if (!v->sure)
		str_puts(out, "unsure ");
	if (v->text)
		str_printf(out, "text:%s ", v->text);
	for (size_t i = 0; i < v->words.n; i++)
		str_printf(out, "%s%s%s", i ? "" : "words:", v->words.items[i],
			i + 1 == v->words.n ? " " : "");
	if (v->size)
		str_printf(out, "size:%lld ", (long long)v->size);
	if (v->called[0])
		str_printf(out, "called:%s ", v->called);
}

static void check_row(const struct row *row)
{
	struct values values = {.sure = true};
	const struct option_target targets[] = {{groups, &values}, {NULL}};
	char *args[ARGS_MAX], *items[ARGS_MAX];
	struct option_words words = {.items = items};
	scoped_str struct str got = {0}, joined = {0};
	struct err err = {0};
	size_t n = 0;
	int r;

	for (; n < ARGS_MAX && row->args[n]; n++)
		args[n] = mem_dup(row->args[n]);
	r = option_parse(targets, args, n, row->n_before, &words, &err);
	if (!row->words) {
		assert_int_equal(r, -EINVAL);
		assert_string_equal(err.msg, row->state);
	} else {
		assert_string_equal(err.msg, "");
		assert_int_equal(r, 0);
		for (size_t i = 0; i < words.n; i++)
			str_printf(&joined, "%s%s", i ? "," : "", words.items[i]);
		str_puts(&joined, "");
		describe(&values, &got);
		assert_string_equal(joined.p ? joined.p : "", row->words);
		assert_string_equal(got.p ? got.p : "", row->state);
	}
	spec_words_done(&values.words);
	for (size_t i = 0; i < n; i++)
		free(args[i]);
}

static void test_rows(void **state)
{
	for (size_t i = 0; i < LEN(rows); i++)
		check_row(&rows[i]);
}

/* Run's own tables, on what people type. */
static void test_run_options(void **state)
{
	struct run_options o = {0};
	const struct option_target targets[] = {{run_options_groups, &o}, {NULL}};
	const char *typed[] = {"-m", "/usr:/u:ro", "--memory=512M", "--cpus", "1.5", "--timeout",
		"30s", "-eA=1", "--label", "k=v", "--apply=on-success", "--fail-on",
		"denied,command", "-T", "--no-trace", "--keep", "--", "ls", "-l"};
	char *args[LEN(typed)], *items[LEN(typed)];
	struct option_words words = {.items = items};
	struct err err = {0};

	for (size_t i = 0; i < LEN(typed); i++)
		args[i] = mem_dup(typed[i]);
	run_options_init(&o);
	assert_int_equal(o.create.spec->trace, SPEC_TRACE_ALL);
	assert_int_equal(option_parse(targets, args, LEN(typed), 0, &words, &err), 0);
	assert_int_equal(words.n, 2);
	assert_string_equal(words.items[1], "-l");
	assert_string_equal(o.create.spec->mounts[0].guest, "/u");
	assert_int_equal(o.create.spec->memory_bytes, 512 << 20);
	assert_int_equal(o.create.spec->cpu_milli, 1500);
	assert_int_equal(o.create.spec->trace, 0);
	assert_true(o.create.spec->keep);
	assert_string_equal(o.create.spec->labels[0].value, "v");
	assert_int_equal(o.exec.exec->timeout_ms, 30000);
	assert_string_equal(o.exec.exec->env.items[0], "A=1");
	assert_int_equal(o.exec.terminal, EXEC_TERMINAL_NO);
	assert_int_equal(o.apply, RUN_APPLY_ON_SUCCESS);
	assert_int_equal(o.fail_on, RUN_FAIL_DENIED | RUN_FAIL_COMMAND);
	assert_int_equal(run_options_check(&o, words.items, words.n, &err), 0);
	o.rw = true;
	assert_int_equal(run_options_check(&o, words.items, words.n, &err), -EINVAL);
	assert_string_equal(err.msg, "options '--rw', '--ro' and '--apply' exclude each other");
	run_options_done(&o);
	for (size_t i = 0; i < LEN(typed); i++)
		free(args[i]);
}

static void test_run_refused(void **state)
{
	static const struct {
		const char *option, *value, *why;
	} cases[] = {
		{"--net", "full",
			"option '--net': 'full' is no network mode: want open, allow or none"},
		{"--allow", "x:y",
			"option '--allow': network rule 'x:y': a port is a number from 1 to 65535"},
		{"--deny", "https://x",
			"option '--deny': network rule 'https://x': leave the scheme (http://) "
			"out: "
			"want HOST[:PORT]"},
		{"--host-map", "a=b",
			"option '--host-map': host map 'a=b': want NAME[:PORT]=ADDR[:PORT] with a "
			"numeric address"},
		{"--resolver", "dns.example",
			"option '--resolver': resolver 'dns.example': want the numeric address of "
			"a "
			"DNS server, ADDR[:PORT]"},
		{"--tls", "off",
			"option '--tls': 'off' is no TLS mode: want intercept, passthrough or "
			"NAME=passthrough"},
		{"--upstream-ca", "/etc/passwd",
			"option '--upstream-ca': '/etc/passwd' holds no certificate: want PEM"},
		{"--upstream-proxy", "http://me:sesame@proxy.example",
			"option '--upstream-proxy': the upstream proxy is no "
			"http://[USER:PASSWORD@]HOST:PORT"},
		{"--publish", "80",
			"option '--publish': '80': want [ADDR:]PORT:PORT, the host's port and then "
			"the sandbox's"},
		{"--secret", "sesame",
			"option '--secret': a secret is "
			"NAME@HOST[,HOST...][,plain=yes][,pass=HOST...]; its value "
			"comes from the environment variable NAME, or from --secret-file "
			"NAME=FILE"},
		{"--secret-file", "sesame", "option '--secret-file': want NAME=FILE"},
		{"--detach", "true",
			"option '--detach': run waits for its command; use create and exec "
			"--detach"},
		{"--fail-on", "x",
			"option '--fail-on': 'x': want refused, denied, incomplete or command"},
		{"--env", "CLOCHE_NO_SUCH",
			"option '--env': variable CLOCHE_NO_SUCH is not set here: give it as "
			"CLOCHE_NO_SUCH=VALUE"},
		{"--workdir", "w",
			"option '--workdir': 'w' is a place inside and must be an absolute path"},
		{"--rootfs", "/no/such",
			"option '--rootfs': '/no/such': No such file or directory"},
		{"--label", "x", "option '--label': 'x': want KEY=VALUE"},
		{"--trace-sources", "folders",
			"option '--trace-sources': 'folders' is no trace source: want processes, "
			"files, outputs, network or mounts"},
		{"--spec", "/no/such", "option '--spec': '/no/such': No such file or directory"},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct run_options o = {0};
		const struct option_target targets[] = {{run_options_groups, &o}, {NULL}};
		char *args[] = {mem_dup(cases[i].option), mem_dup(cases[i].value)}, *items[2];
		struct option_words words = {.items = items};
		struct err err = {0};

		run_options_init(&o);
		assert_int_equal(option_parse(targets, args, 2, 0, &words, &err), -EINVAL);
		assert_string_equal(err.msg, cases[i].why);
		run_options_done(&o);
		free(args[0]);
		free(args[1]);
	}
}

/* An option of the network is not lost behind a command; what else a command has is its own. */
static void test_lost(void **state)
{
	static const struct {
		const char *args[4], *want;
	} cases[] = {
		{{"agent", "--allow", "x"}, "--allow"},
		{{"agent", "run", "--net=none"}, "--net=none"},
		{{"--allow", "x", "agent"}, NULL},
		{{"agent", "--name", "x"}, NULL},
		{{"agent", "--allowed", "x"}, NULL},
		{{"agent", "--", "-p"}, NULL},
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct run_options o = {0};
		const struct option_target targets[] = {{run_options_groups, &o}, {NULL}};
		char *args[4], *items[4];
		struct option_words words = {.items = items};
		struct err err = {0};
		const char *got;
		size_t n = 0;

		for (; n < LEN(args) && cases[i].args[n]; n++)
			args[n] = mem_dup(cases[i].args[n]);
		run_options_init(&o);
		assert_int_equal(option_parse(targets, args, n, 0, &words, &err), 0);
		got = option_find_lost(targets, &words, 1);
		assert_int_equal(!got, !cases[i].want);
		if (got)
			assert_string_equal(got, cases[i].want);
		run_options_done(&o);
		while (n > 0)
			free(args[--n]);
	}
}

/* A table must not have two rows of one name, and no verb may take a letter of the global ones. */
static void check_unique(const struct option_group *g, const char *verb)
{
	const struct option_target all[] = {{g, NULL}, {cli_global_groups, NULL}, {NULL}};

	for (; g && g->options; g++)
		for (const struct option *o = g->options; o->name; o++) {
			char letter[] = {o->letter, '\0'};

			if (o->name[0] && option_find(all, o->name, strlen(o->name)) != o)
				fail_msg("%s: two options '--%s'", verb, o->name);
			if (o->letter && option_find(all, letter, 1) != o)
				fail_msg("%s: two options '-%s'", verb, letter);
			if (!o->help && o->kind != OPTION_CALL) /* which only refuses */
				fail_msg("%s: '--%s' without help", verb, o->name);
		}
}

static void test_tables(void **state)
{
	check_unique(run_options_groups, "run");
	for (size_t i = 0; verb_table[i]; i++) {
		scoped_str struct str help = {0};

		check_unique(verb_table[i]->groups, verb_table[i]->name);
		usage_add_verb(&help, verb_table[i]);
		assert_int_equal(strstr(help.p, "--detach") != NULL,
			strcmp(verb_table[i]->name, "exec") == 0);
		assert_non_null(strstr(help.p, verb_table[i]->help));
		assert_ptr_equal(verb_find(verb_table[i]->name), verb_table[i]);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(verb_table[k]->name, verb_table[i]->name);
	}
}

/* "-" stands as "\-" in a page. */
static bool page_names(const struct str *page, const char *name)
{
	scoped_str struct str want = {0};

	str_puts(&want, "\\-\\-");
	for (; *name; name++)
		if (*name == '-')
			str_puts(&want, "\\-");
		else
			str_putc(&want, *name);
	return strstr(page->p, want.p) != NULL;
}

static void check_page(const struct verb *verb)
{
	const char *source = getenv("CLOCHE_SOURCE");
	scoped_mem char *path =
		mem_printf("%s/docs/man/cloche-%s.1", source ? source : ".", verb->name);
	scoped_str struct str page = {0};

	if (fdio_read_file(AT_FDCWD, path, 1 << 20, &page) < 0)
		fail_msg("%s is missing", path);
	for (const struct option_group *g = verb->groups; g && g->options; g++)
		for (const struct option *o = g->options; o->name; o++)
			if (o->help && o->name[0] && !page_names(&page, o->name))
				fail_msg("%s does not name --%s", path, o->name);
}

static void test_pages(void **state)
{
	for (size_t i = 0; verb_table[i]; i++)
		check_page(verb_table[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_run_options),
		cmocka_unit_test(test_run_refused),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests_name("option", tests, NULL, NULL);
}
