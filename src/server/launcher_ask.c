/* SPDX-License-Identifier: Apache-2.0 */
#include "server/launcher_ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/client.h"
#include "control/launcher_client.h"
#include "server/audit_index.h"
#include "util/clock.h"
#include "util/id.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define CONNECT_MS 10000
#define AUDIT_MS   30000
#define LEDGER_MS  60000
#define RULES_MS   30000
#define MEND_MS    60000
#define VERB_MS    (3600 * 1000) /* an image may have to be fetched */

/* body: the members of the request; its object is closed here. */
static int ask(struct server *server, struct launcher_ask *ask, struct jsonw *body, json_t **ret,
	int *ret_fd, struct err *err)
{
	jsonw_object_end(body);
	ask->body = str_slice(body->out);
	return launcher_client_ask(server->office, ask, ret, ret_fd, err);
}

static int ask_about(struct server *server, const char *request, const char *sandbox,
	int timeout_ms, int *ret_fd, struct err *err)
{
	scoped_str struct str body = {0};
	struct jsonw j = jsonw_to(&body);

	jsonw_object(&j);
	jsonw_ktext(&j, "sandbox", sandbox);
	return ask(server,
		&(struct launcher_ask){.request = request, .pass_fd = -1, .timeout_ms = timeout_ms},
		&j, NULL, ret_fd, err);
}

int launcher_ask_ready(struct server *server, const char *why, struct err *err)
{
	scoped_str struct str body = {0};
	struct jsonw j = jsonw_to(&body);

	jsonw_object(&j);
	if (why)
		jsonw_ktext(&j, "why", why);
	return ask(server,
		&(struct launcher_ask){.request = "ready", .pass_fd = -1, .timeout_ms = CONNECT_MS},
		&j, NULL, NULL, err);
}

int launcher_ask_mend(struct server *server, const char *sandbox, struct err *err)
{
	return ask_about(server, "mend", sandbox, MEND_MS, NULL, err);
}

/* It is there, since the caller has found it, but nothing of it runs. What to do then is said for people at the host. */
static int tell_not_running(struct err *err)
{
	char *help = strstr(err->msg, ": `cloche");

	if (help)
		*help = '\0';
	return -ENOTCONN;
}

int launcher_ask_connect(struct server *server, const char *sandbox, struct err *err)
{
	int fd = -1, r = ask_about(server, "connect", sandbox, CONNECT_MS, &fd, err);

	if (r == -ECONNREFUSED)
		(void)launcher_ask_mend(server, sandbox, NULL); /* else the launcher does, later */
	if (r == -ENOENT || r == -ECONNREFUSED)
		return tell_not_running(err);
	return r < 0 ? r : fd;
}

int launcher_ask_client(
	struct call *call, const char *sandbox, struct client **ret_client, struct err *err)
{
	int r = launcher_ask_connect(call->server, sandbox, err);

	if (r < 0)
		return r;
	*ret_client = client_adopt(r);
	return 0;
}

int launcher_ask_supervisor(struct call *call, const struct launcher_question *question,
	json_t **ret_answer, struct err *err)
{
	scoped(client) struct client *client = NULL;
	scoped_str struct str body = {0};
	struct jsonw j = jsonw_to(&body);
	int r = launcher_ask_client(call, question->sandbox, &client, err);

	if (r < 0)
		return r;
	jsonw_object(&j);
	jsonw_ktext(&j, question->key, question->value);
	jsonw_object_end(&j);
	return client_ask(client, question->request, str_slice(&body), ret_answer, err);
}

/* A word of small letters and its colon are no part of a sentence. */
static const char *behind_word(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz-");

	return n > 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

#define STATUS_USAGE     2
#define STATUS_FAILURE   125
#define STATUS_FORBIDDEN 126 /* of what an account may name */

static int errno_of(int status)
{
	return status == STATUS_FORBIDDEN                           ? -EPERM
	       : status == STATUS_USAGE || status == STATUS_FAILURE ? -EINVAL
	                                                            : -EIO;
}

/* What a verb said on stderr, less what it says to somebody at a terminal: its name, its options, its help. */
static int say(const char *text, int status, struct err *err)
{
	static const char *const before[] = {"option '--spec': ", "'/proc/self/fd/3': "};
	const char *help = strstr(text, " (`cloche"), *end = strchr(text, '\n');

	text = behind_word(behind_word(text)); /* "cloche: create: " */
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		if (strncmp(text, before[i], strlen(before[i])) == 0)
			text += strlen(before[i]);
	end = help && (!end || help < end) ? help : end;
	return err_set(
		err, errno_of(status), "%.*s", end ? (int)(end - text) : (int)strlen(text), text);
}

static int take_result(const json_t *answer, char **ret_output, struct err *err)
{
	const char *output = json_string_value(json_object_get(answer, "output"));
	const char *error = json_string_value(json_object_get(answer, "error"));
	int status = (int)json_integer_value(json_object_get(answer, "status"));

	if (status > 1)
		return say(error ? error : "", status, err);
	if (ret_output)
		*ret_output = mem_dup(output ? output : "");
	return status;
}

static void add_json(struct jsonw *j, const char *key, const json_t *value)
{
	scoped_mem char *text = json_dumps(value, JSON_COMPACT);

	if (!text)
		return;
	jsonw_key(j, key);
	jsonw_raw(j, slice_of(text));
	explicit_bzero(text, strlen(text)); /* it may hold secrets */
}

int launcher_ask_create(struct call *call, const json_t *spec, const json_t *hidden,
	char ret_id[ID_SIZE], struct err *err)
{
	scoped_mem char *output = NULL;
	scoped_secret struct str body = {0}; /* it may hold some */
	struct jsonw j = jsonw_to(&body);
	json_t *answer = NULL;
	int r;

	jsonw_object(&j);
	jsonw_ktext(&j, "account", call->caller.account);
	jsonw_ktext(&j, "actor", call->caller.actor);
	add_json(&j, "spec", spec);
	add_json(&j, "hidden", hidden);
	r = ask(call->server,
		&(struct launcher_ask){.request = "create", .pass_fd = -1, .timeout_ms = VERB_MS},
		&j, &answer, NULL, err);
	if (r == 0)
		r = take_result(answer, &output, err);
	json_decref(answer);
	if (r == 0 && (strlen(output) < ID_LEN || output[ID_LEN] != '\n'))
		r = err_set(err, -EIO, "the launcher gave no id");
	if (r == 0)
		memcpy(ret_id, output, ID_LEN);
	ret_id[ID_LEN] = '\0';
	return r;
}

static void add_list(struct jsonw *j, const char *key, const char *const *items)
{
	jsonw_key(j, key);
	jsonw_array(j);
	for (size_t i = 0; items && items[i]; i++)
		jsonw_text(j, items[i]);
	jsonw_array_end(j);
}

int launcher_ask_verb(
	struct call *call, const struct launcher_verb *verb, char **ret_output, struct err *err)
{
	scoped_secret struct str body = {0}; /* it may hold some */
	struct jsonw j = jsonw_to(&body);
	json_t *answer = NULL;
	int r;

	jsonw_object(&j);
	jsonw_ktext(&j, "verb", verb->verb);
	jsonw_ktext(&j, "sandbox", verb->sandbox);
	jsonw_ktext(&j, "actor", call->caller.actor);
	add_list(&j, "options", verb->options);
	add_list(&j, "words", verb->words);
	add_json(&j, "hidden", verb->hidden);
	r = ask(call->server,
		&(struct launcher_ask){
			.request = "verb", .pass_fd = verb->stdout_fd, .timeout_ms = VERB_MS},
		&j, &answer, NULL, err);
	if (r == 0)
		r = take_result(answer, ret_output, err);
	json_decref(answer);
	return r;
}

/* Of a living sandbox: one that prints what holds then, which the caller asks for itself. */
static int change_network(
	struct call *call, const char *request, struct jsonw *body, struct err *err)
{
	json_t *answer = NULL;
	int r = ask(call->server,
		&(struct launcher_ask){.request = request, .pass_fd = -1, .timeout_ms = RULES_MS},
		body, &answer, NULL, err);

	if (r == 0)
		r = take_result(answer, NULL, err);
	json_decref(answer);
	return r < 0 ? r : 0;
}

int launcher_ask_net_rules(
	struct call *call, const char *sandbox, const json_t *rules, struct err *err)
{
	scoped_str struct str body = {0};
	struct jsonw j = jsonw_to(&body);

	jsonw_object(&j);
	jsonw_ktext(&j, "sandbox", sandbox);
	jsonw_ktext(&j, "actor", call->caller.actor);
	add_json(&j, "rules", rules);
	return change_network(call, "net-rules", &j, err);
}

int launcher_ask_net_proxy(struct call *call, const char *sandbox, const char *url,
	const json_t *hidden, struct err *err)
{
	scoped_secret struct str body = {0};
	struct jsonw j = jsonw_to(&body);

	jsonw_object(&j);
	jsonw_ktext(&j, "sandbox", sandbox);
	jsonw_ktext(&j, "actor", call->caller.actor);
	jsonw_ktext(&j, "url", url);
	add_json(&j, "hidden", hidden);
	return change_network(call, "net-proxy", &j, err);
}

int launcher_ask_watch(struct server *server, const struct launcher_watch *watch, struct err *err)
{
	scoped_str struct str body = {0}, path = {0};
	struct jsonw j = jsonw_to(&body);

	jsonw_base64(&path, watch->path.p, watch->path.len);
	jsonw_object(&j);
	jsonw_ktext(&j, "sandbox", watch->sandbox);
	jsonw_ktext(&j, "path_b64", path.p);
	jsonw_kbool(&j, "wait", watch->is_patient);
	return ask(server,
		&(struct launcher_ask){.request = "watch-files",
			.pass_fd = watch->out_fd,
			.timeout_ms = CONNECT_MS},
		&j, NULL, NULL, err);
}

int launcher_ask_audit(struct call *call, const char *act, const char *object, const char *sandbox,
	const char *detail, struct err *err)
{
	json_t *line = json_pack("{s:s, s:s, s:s, s:s, s:s*, s:s*, s:s*}", "account",
		call->caller.account, "actor", call->caller.actor, "origin",
		call->exchange ? exchange_peer(call->exchange)->address : "server", "act", act,
		"object", object, "sandbox", sandbox, "detail", detail);
	scoped_str struct str body = {0};
	struct jsonw j = jsonw_to(&body);
	json_t *answer = NULL;
	int r;

	jsonw_object(&j);
	add_json(&j, "line", line);
	json_decref(line);
	r = ask(call->server,
		&(struct launcher_ask){.request = "audit", .pass_fd = -1, .timeout_ms = AUDIT_MS},
		&j, &answer, NULL, err);
	if (r == 0)
		r = audit_index_add(call->server, json_object_get(answer, "line"), err);
	json_decref(answer);
	return r;
}

int launcher_ask_journal(struct server *server, struct err *err)
{
	scoped_str struct str body = {0};
	struct jsonw j = jsonw_to(&body);
	int fd = -1, r;

	jsonw_object(&j);
	r = ask(server,
		&(struct launcher_ask){.request = "journal", .pass_fd = -1, .timeout_ms = AUDIT_MS},
		&j, NULL, &fd, err);
	return r < 0 ? r : fd;
}

int launcher_ask_removed(struct server *server, const char *const *ids, size_t n,
	json_t **ret_removed, struct err *err)
{
	scoped_str struct str body = {0};
	struct jsonw j = jsonw_to(&body);
	json_t *answer = NULL;
	int r;

	jsonw_object(&j);
	jsonw_key(&j, "sandboxes");
	jsonw_array(&j);
	for (size_t i = 0; i < n; i++)
		jsonw_text(&j, ids[i]);
	jsonw_array_end(&j);
	r = ask(server,
		&(struct launcher_ask){
			.request = "removed", .pass_fd = -1, .timeout_ms = LEDGER_MS},
		&j, &answer, NULL, err);
	*ret_removed = json_incref(json_object_get(answer, "removed"));
	json_decref(answer);
	return r;
}
