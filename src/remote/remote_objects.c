/* SPDX-License-Identifier: Apache-2.0 */
/* keys, accounts, audit, secrets, webhooks: lists of a control plane's own, each with what makes and removes one. A table says
 * how each is shown. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ps_list.h"
#include "cli/server_act.h"
#include "remote/remote_list.h"
#include "remote/remote_verbs.h"
#include "remote/request.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"

#define VALUE_MAX  4096 /* of a secret */
#define AUDIT_MANY 100  /* lines without --limit */
#define AUDIT_EACH 1000 /* a page */

static const struct remote_list keys_list = {"/v1/api-keys",
	{{"ID", "id"}, {"ROLE", "role"}, {"NAME", "name"}, {"BEGINS WITH", "prefix"},
		{"CREATED", "created_at", REMOTE_LIST_TIME}, {"USED", "used_at", REMOTE_LIST_TIME},
		{"REVOKED", "revoked_at", REMOTE_LIST_TIME}}};
static const struct remote_list accounts_list = {"/v1/accounts",
	{{"ID", "id"}, {"NAME", "name"}, {"SANDBOXES", "max_sandboxes", REMOTE_LIST_LIMIT},
		{"EXECS", "max_execs", REMOTE_LIST_LIMIT},
		{"CREATED", "created_at", REMOTE_LIST_TIME}}};
static const struct remote_list secrets_list = {
	"/v1/secrets", {{"NAME", "name"}, {"SET", "set_at", REMOTE_LIST_TIME}, {"PLAIN", "plain"},
			       {"HOSTS", "hosts"}}};
static const struct remote_list webhooks_list = {
	"/v1/webhooks", {{"ID", "id"}, {"CREATED", "created_at", REMOTE_LIST_TIME},
				{"SANDBOX", "sandbox"}, {"URL", "url"}, {"EVENTS", "events"}}};
static const struct remote_list deliveries_list = {
	NULL, {{"ID", "id"}, {"EVENT", "event"}, {"SANDBOX", "sandbox"}, {"STATE", "state"},
		      {"CREATED", "created_at", REMOTE_LIST_TIME},
		      {"TRIES", "tries", REMOTE_LIST_COUNT}}};
static const struct remote_list audit_list = {
	"/v1/audit", {{"AT", "at", REMOTE_LIST_TIME}, {"ACTOR", "actor"}, {"FROM", "origin"},
			     {"ACT", "act"}, {"OBJECT", "object"}, {"DETAIL", "detail"}}};

/* ---- one object ---- */

static int make(
	const struct cli *cli, const char *path, const json_t *body, json_t **ret, struct err *err)
{
	scoped_mem char *text = json_dumps(body, JSON_COMPACT);
	int r = text ? request_json(link_of(cli),
			       &(struct ask){
				       .method = "POST", .path = path, .body = slice_of(text)},
			       ret, err)
	             : err_set(err, -EINVAL, "a text is not UTF-8");

	if (text)
		explicit_bzero(text, strlen(text));
	return r;
}

/* DELETE for each argument. */
static int remove_all(
	const struct cli *cli, const char *path, char **args, size_t n_args, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_args; i++) {
		scoped_str struct str url = {0};

		str_printf(&url, "%s/", path);
		address_add_part(&url, args[i]);
		r = request_json(
			link_of(cli), &(struct ask){.method = "DELETE", .path = url.p}, NULL, err);
	}
	return r;
}

/* What is shown once: alone on stdout, so that it can be piped; what it belongs to is said beside it. With JSON all of it. */
static int print_made(const struct cli *cli, const json_t *made, const char *shown,
	const char *what, struct err *err)
{
	const char *text = json_string_value(json_object_get(made, shown)),
		   *id = json_string_value(json_object_get(made, "id"));
	scoped_secret struct str out = {0};
	char *json = cli->json || cli->jsonl ? json_dumps(made, JSON_COMPACT) : NULL;

	if (json)
		str_printf(&out, "%s\n", json);
	else if (text)
		remote_list_add_line(&out, text);
	free(json);
	if (!cli->quiet && what && id)
		log_warn("%s %s; it is shown only now", what, id);
	return cli_print(&out, err);
}

static void set_text(json_t *body, const char *key, const char *value)
{
	if (value)
		json_object_set_new(body, key, json_string(value));
}

static void set_count(json_t *body, const char *key, int64_t value)
{
	if (value)
		json_object_set_new(body, key, json_integer(value));
}

static void set_words(json_t *body, const char *key, const struct spec_words *words)
{
	json_t *list = json_array();

	for (size_t i = 0; i < words->n; i++)
		json_array_append_new(list, json_string(words->items[i]));
	if (words->n)
		json_object_set(body, key, list);
	json_decref(list);
}

/* path: where it is made. shown: the member that is printed; what: NULL, or what that is. */
static int create(const struct cli *cli, const char *path, json_t *body, const char *shown,
	const char *what, struct err *err)
{
	json_t *made = NULL;
	int r = make(cli, path, body, &made, err);

	json_decref(body);
	if (r == 0)
		r = print_made(cli, made, shown, what, err);
	json_decref(made);
	return r;
}

/* The act's name, and its arguments. */
static const char *take_act(const struct server_act *acts, char ***args, size_t *n_args)
{
	size_t n;
	const struct server_act *act = server_act_find(acts, *args, *n_args, &n);

	*args += n;
	*n_args -= n;
	return act->name;
}

/* ---- the verbs ---- */

int remote_keys(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct server_options *o = options;
	const char *act = take_act(server_act_keys, &args, &n_args);
	json_t *body;

	if (strcmp(act, "list") == 0)
		return remote_list_print(cli, &keys_list, NULL, err);
	if (strcmp(act, "revoke") == 0)
		return remove_all(cli, keys_list.path, args, n_args, err);
	body = json_object();
	set_text(body, "name", o->name);
	set_text(body, "role", o->role);
	set_text(body, "account", o->account);
	set_count(body, "rate_limit", o->rate_limit);
	return create(cli, keys_list.path, body, "key", "key", err);
}

int remote_accounts(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct server_options *o = options;
	const char *act = take_act(server_act_accounts, &args, &n_args);
	json_t *body;

	if (strcmp(act, "list") == 0)
		return remote_list_print(cli, &accounts_list, NULL, err);
	body = json_object();
	set_text(body, "id", args[0]);
	set_text(body, "name", o->name);
	set_count(body, "max_sandboxes", o->max_sandboxes);
	set_count(body, "max_execs", o->max_execs);
	return create(cli, accounts_list.path, body, "id", NULL, err);
}

static int redeliver(
	const struct cli *cli, const char *webhook, char **args, size_t n_args, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_args; i++) {
		scoped_str struct str url = {0};

		str_puts(&url, "/v1/webhooks/");
		address_add_part(&url, webhook);
		str_puts(&url, "/deliveries/");
		address_add_part(&url, args[i]);
		str_puts(&url, "/redeliver");
		r = request_json(
			link_of(cli), &(struct ask){.method = "POST", .path = url.p}, NULL, err);
	}
	return r;
}

static int print_deliveries(const struct cli *cli, const char *webhook, struct err *err)
{
	scoped_str struct str url = {0};

	str_puts(&url, "/v1/webhooks/");
	address_add_part(&url, webhook);
	str_puts(&url, "/deliveries");
	return remote_list_print(cli, &deliveries_list, url.p, err);
}

int remote_webhooks(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const struct server_options *o = options;
	const char *act = take_act(server_act_webhooks, &args, &n_args);
	json_t *body;

	if (strcmp(act, "list") == 0)
		return remote_list_print(cli, &webhooks_list, NULL, err);
	if (strcmp(act, "delete") == 0)
		return remove_all(cli, webhooks_list.path, args, n_args, err);
	if (strcmp(act, "deliveries") == 0)
		return print_deliveries(cli, args[0], err);
	if (strcmp(act, "redeliver") == 0)
		return redeliver(cli, args[0], args + 1, n_args - 1, err);
	body = json_object();
	set_text(body, "url", args[0]);
	set_words(body, "events", &o->events);
	set_text(body, "sandbox", o->sandbox);
	return create(cli, webhooks_list.path, body, "secret", "the secret of webhook", err);
}

/* From the file, or the variable of that name. */
static int read_value(
	const struct server_options *o, const char *name, struct str *value, struct err *err)
{
	const char *env = getenv(name);
	int r = 0;

	if (!o->file && !env)
		return err_set(err, -EINVAL,
			"variable %s is not set here: set it to the value, or name a file that "
			"holds it with --file (- is stdin)",
			name);
	if (!o->file)
		str_puts(value, env);
	else if (strcmp(o->file, "-") == 0)
		r = fdio_read_all(STDIN_FILENO, VALUE_MAX + 2, value);
	else
		r = fdio_read_file(AT_FDCWD, o->file, VALUE_MAX + 2, value);
	while (r == 0 && o->file && value->len && strchr("\r\n", value->p[value->len - 1]))
		value->p[--value->len] = '\0';
	return r < 0 ? err_set(err, r, "read the value of %s: %m", name) : 0;
}

static int create_secret(
	const struct cli *cli, const struct server_options *o, const char *name, struct err *err)
{
	scoped_secret struct str value = {0};
	json_t *body = json_object(), *made = NULL;
	int r = read_value(o, name, &value, err);

	set_text(body, "name", name);
	set_text(body, "value", value.p ? value.p : "");
	set_words(body, "hosts", &o->hosts);
	if (o->plain)
		json_object_set_new(body, "plain", json_true());
	if (r == 0)
		r = make(cli, secrets_list.path, body, &made, err);
	json_decref(body);
	if (r == 0 && (cli->json || cli->jsonl))
		r = print_made(cli, made, "name", NULL, err);
	json_decref(made);
	return r;
}

int remote_secrets(
	const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	const char *act = take_act(server_act_secrets, &args, &n_args);

	if (strcmp(act, "list") == 0)
		return remote_list_print(cli, &secrets_list, NULL, err);
	if (strcmp(act, "delete") == 0)
		return remove_all(cli, secrets_list.path, args, n_args, err);
	return create_secret(cli, options, args[0], err);
}

/* ---- the audit log ---- */

struct audit {
	const struct server_options *o;
	json_t *lines;
	int64_t limit;
};

/* They come newest first, and are wanted the other way round. */
static int take_line(void *ctx, json_t *item, struct err *err)
{
	struct audit *audit = ctx;

	if ((int64_t)json_array_size(audit->lines) >= audit->limit)
		return 1;
	json_array_insert(audit->lines, 0, item);
	return 0;
}

static int add_bound(struct str *url, const char *key, const char *text, struct err *err)
{
	char at[CLOCK_TEXT_LEN];
	int64_t ms;
	int r = text ? ps_list_parse_since(text, &ms, err) : 0;

	if (r < 0 || !text)
		return r;
	clock_format(ms, at);
	str_printf(url, "&%s=", key);
	address_add_part(url, at);
	return 0;
}

static json_int_t last_of(const json_t *lines)
{
	size_t n = json_array_size(lines);

	return n ? json_integer_value(json_object_get(json_array_get(lines, n - 1), "n")) : 0;
}

/* Those behind that one, as they come. */
static int follow(const struct cli *cli, json_int_t last, struct err *err)
{
	int r = 0;

	while (r == 0) {
		scoped_mem char *url = mem_printf(
			"%s?limit=%d&cursor=%lld", audit_list.path, AUDIT_EACH, (long long)last);
		json_t *page = NULL;
		const json_t *lines;

		(void)sleep(1);
		r = request_json(link_of(cli), &(struct ask){.path = url}, &page, err);
		lines = json_object_get(page, "items");
		if (r == 0 && json_array_size(lines))
			r = remote_list_print_rows(cli, &audit_list, lines, true, err);
		last = json_array_size(lines) ? last_of(lines) : last;
		json_decref(page);
	}
	return r;
}

static int newest(const struct cli *cli, json_int_t *ret_last, struct err *err)
{
	scoped_mem char *url = mem_printf("%s?limit=1&order=desc", audit_list.path);
	json_t *page = NULL;
	int r = request_json(link_of(cli), &(struct ask){.path = url}, &page, err);

	*ret_last = last_of(json_object_get(page, "items"));
	json_decref(page);
	return r;
}

int remote_audit(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	struct audit audit = {.o = options, .lines = json_array()};
	scoped_str struct str url = {0};
	json_int_t last;
	int r;

	audit.limit = audit.o->limit ? audit.o->limit : AUDIT_MANY;
	str_printf(&url, "%s?order=desc", audit_list.path);
	r = add_bound(&url, "from", audit.o->since, err);
	if (r == 0)
		r = add_bound(&url, "to", audit.o->until, err);
	if (r == 0)
		r = request_pages(link_of(cli), url.p, take_line, &audit, err);
	if (r == 0)
		r = remote_list_print_rows(cli, &audit_list, audit.lines, false, err);
	last = last_of(audit.lines);
	json_decref(audit.lines);
	if (r < 0 || !audit.o->follow)
		return r;
	if (last == 0)
		r = newest(cli, &last, err);
	return r < 0 ? r : follow(cli, last, err);
}
