/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes: made, listed, paused, suspended, ended. The launcher and the supervisors do it; what became of it is read from
 * the record before the answer goes out, so that whoever asks next sees it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/client.h"
#include "server/allowance.h"
#include "server/api.h"
#include "server/indexer.h"
#include "server/launcher_ask.h"
#include "server/network_use.h"
#include "server/page.h"
#include "server/previews.h"
#include "server/retention.h"
#include "util/clock.h"
#include "util/mem.h"

struct found {
	const struct server *server;
	char *state;
	bool is_found, is_elsewhere;
};

static int take_state(const struct store_sandbox *sandbox, void *arg)
{
	struct found *found = arg;

	found->is_found = true;
	found->is_elsewhere = strcmp(sandbox->place, found->server->host) != 0;
	if (found->state)
		memccpy(found->state, sandbox->state, '\0', 16);
	return 0;
}

static int find(struct call *call, const char **ret_id, struct found *found, struct err *err)
{
	const char *id = call->params[0];
	int r = id_is_valid("sb", id) ? store_sandbox_get(call->server->store, call->caller.account,
						id, take_state, found, err)
	                              : -ENOENT;

	if (r == -ENOENT || (r == 0 && !found->is_found))
		return err_set(err, -ENOENT, "there is no sandbox '%s'", id);
	*ret_id = id;
	return r < 0 ? r : 0;
}

int api_sandbox_id(struct call *call, const char **ret_id, char state[16], struct err *err)
{
	struct found found = {.server = call->server, .state = state};
	int r = find(call, ret_id, &found, err);

	if (r == 0 && found.is_elsewhere)
		return err_set(err, -EREMOTE, "sandbox %s is on another host: ask the server there",
			*ret_id);
	return r;
}

int api_sandbox_anywhere(struct call *call, const char **ret_id, bool *ret_is_here, struct err *err)
{
	struct found found = {.server = call->server};
	int r = find(call, ret_id, &found, err);

	if (ret_is_here)
		*ret_is_here = !found.is_elsewhere;
	return r;
}

static void add_time(struct jsonw *j, const char *key, int64_t ms)
{
	char text[CLOCK_TEXT_LEN];

	clock_format(ms, text);
	jsonw_ktext(j, key, ms ? text : NULL);
}

static void write_sandbox(struct str *out, const struct store_sandbox *s)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_ktext(&j, "id", s->id);
	jsonw_ktext(&j, "account", s->account);
	jsonw_ktext(&j, "name", s->name && *s->name ? s->name : NULL);
	jsonw_ktext(&j, "state", s->state);
	jsonw_key(&j, "labels");
	jsonw_raw(&j, slice_of(s->labels_json && *s->labels_json ? s->labels_json : "{}"));
	add_time(&j, "created_at", s->created_ms);
	add_time(&j, "ended_at", s->ended_ms);
	jsonw_object_end(&j);
}

static int write_one(const struct store_sandbox *sandbox, void *arg)
{
	write_sandbox(arg, sandbox);
	return 0;
}

static int answer_from_store(struct call *call, const char *id, struct err *err)
{
	int r = store_sandbox_get(
		call->server->store, call->caller.account, id, write_one, &call->out, err);

	return r < 0 ? r : 0;
}

/* What the record says now, as the answer. */
static int answer_with(struct call *call, const char *id, struct err *err)
{
	int r = indexer_catch_up(call->server->indexer, id, NULL, NULL, err);

	return r < 0 ? r : answer_from_store(call, id, err);
}

/* The same, where its state has changed. */
static int answer_changed(struct call *call, const char *id, struct err *err)
{
	int r = answer_with(call, id, err);

	previews_changed(call->server->previews);
	return r;
}

int api_sandboxes_get(struct call *call, struct err *err)
{
	const char *id = NULL;
	bool is_here = true;
	int r = api_sandbox_anywhere(call, &id, &is_here, err);

	if (r < 0)
		return r;
	return is_here ? answer_with(call, id, err) : answer_from_store(call, id, err);
}

/* Traced unless it is asked not to be; the account is the key's, whatever the spec says. */
static int prepare_spec(struct call *call, struct err *err)
{
	json_t *account = json_object_get(call->body, "account");

	if (account && !json_is_null(account) &&
		strcmp(json_string_value(account) ?: "", call->caller.account) != 0)
		return err_set(err, -EPERM, "account: a sandbox belongs to the account of the key");
	json_object_del(call->body, "account");
	if (!json_object_get(call->body, "trace"))
		json_object_set_new(call->body, "trace", json_true());
	return 0;
}

/* One that was made, of the files of from (NULL: of none). */
static int enter(struct call *call, const char *id, const char *from, struct err *err)
{
	int r = launcher_ask_audit(call, "sandbox.created", id, id, from, err);

	call->status = 201;
	return r < 0 ? r : answer_with(call, id, err);
}

/* Whoever asked for it is not told its id, so it must not stay. */
static int undo(struct call *call, const char *id, int r)
{
	struct err none;

	/* Where this fails, too, it is in the list as soon as the store is there again. */
	(void)launcher_ask_verb(call,
		&(struct launcher_verb){.verb = "rm", .sandbox = id, .stdout_fd = -1}, NULL, &none);
	(void)launcher_ask_audit(call, "sandbox.removed", id, id, "it could not be entered", &none);
	return r;
}

static int create(struct call *call, struct err *err)
{
	json_t *hidden = NULL;
	char id[ID_SIZE];
	int r = prepare_spec(call, err);

	if (r == 0)
		r = network_use_in_spec(call, call->body, &hidden, err);
	if (r == 0)
		r = launcher_ask_create(call, call->body, hidden, id, err);
	json_decref(hidden);
	if (r < 0)
		return r;
	r = enter(call, id, NULL, err);
	if (r == 0)
		r = network_use_keep(call, id, call->body, err);
	return r < 0 ? undo(call, id, r) : 0;
}

/* While it is being made it counts, too. */
static int within_quota(
	struct call *call, int (*make)(struct call *call, struct err *err), struct err *err)
{
	int r = allowance_take(call, ALLOWANCE_SANDBOXES, err);

	if (r < 0)
		return r;
	r = make(call, err);
	allowance_give(call->server->allowance, ALLOWANCE_SANDBOXES, call->caller.account);
	return r;
}

int api_sandboxes_create(struct call *call, struct err *err)
{
	return within_quota(call, create, err);
}

static int on_sandbox(const struct store_sandbox *sandbox, void *arg)
{
	scoped_str struct str json = {0};

	write_sandbox(&json, sandbox);
	page_add(arg, str_slice(&json), sandbox->n);
	return 0;
}

static int check_state(const char *state, struct err *err)
{
	static const char *const states[] = {"creating", "running", "paused", "suspended", "ended"};

	for (size_t i = 0; state && i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(states[i], state) == 0)
			return 0;
	return state ? err_set(err, -EINVAL,
			       "parameter 'state': want creating, running, paused, suspended or "
			       "ended")
	             : 0;
}

int api_sandboxes_list(struct call *call, struct err *err)
{
	static const char *const names[] = {"limit", "cursor", "state", "label", NULL};
	scoped_mem char *label = mem_dup(call_query(call, "label"));
	char *is = label ? strchr(label, '=') : NULL;
	struct page page = {0};
	int r = call_check_query(call, names, err);

	if (r == 0)
		r = check_state(call_query(call, "state"), err);
	if (r == 0 && label && !is)
		r = err_set(err, -EINVAL, "parameter 'label': want KEY=VALUE");
	if (r == 0)
		r = page_begin(&page, call, true, err);
	if (r < 0)
		return r;
	if (is)
		*is = '\0';
	r = store_sandbox_list(call->server->store,
		&(struct store_sandbox_query){.account = call->caller.account,
			.state = call_query(call, "state"),
			.label_name = label,
			.label_value = is ? is + 1 : NULL,
			.before = page.cursor,
			.limit = (int)page.limit},
		on_sandbox, &page, err);
	if (r < 0)
		return r;
	page_end(&page);
	return 0;
}

/* One request to its supervisor. */
static int ask(struct call *call, const char *id, const char *request, struct err *err)
{
	scoped(client) struct client *client = NULL;
	int fd = launcher_ask_connect(call->server, id, err);

	if (fd < 0)
		return fd;
	client = client_adopt(fd);
	return client_ask(client, request, slice_of(""), NULL, err);
}

static int live(struct call *call, const char *request, struct err *err)
{
	const char *id = NULL;
	int r = api_sandbox_id(call, &id, NULL, err);

	if (r == 0)
		r = ask(call, id, request, err);
	return r < 0 ? r : answer_changed(call, id, err);
}

int api_sandboxes_pause(struct call *call, struct err *err)
{
	return live(call, "pause", err);
}

int api_sandboxes_wake(struct call *call, struct err *err)
{
	return live(call, "wake", err);
}

int api_sandboxes_stop(struct call *call, struct err *err)
{
	return live(call, "stop", err);
}

int api_sandboxes_suspend(struct call *call, struct err *err)
{
	return live(call, "suspend", err);
}

static int by_launcher(struct call *call, const char *verb, const json_t *hidden, struct err *err)
{
	const char *id = NULL;
	int r = api_sandbox_id(call, &id, NULL, err);

	if (r == 0)
		r = launcher_ask_verb(call,
			&(struct launcher_verb){
				.verb = verb, .sandbox = id, .hidden = hidden, .stdout_fd = -1},
			NULL, err);
	return r < 0 ? r : answer_changed(call, id, err);
}

static int find_resting(struct call *call, const char **ret_id, struct err *err)
{
	char state[16] = "";
	int r = api_sandbox_id(call, ret_id, state, err);

	if (r == 0 && strcmp(state, "suspended") != 0)
		return err_set(err, -EBADFD, "sandbox %s is %s: this needs one that is suspended",
			*ret_id, state);
	return r;
}

int api_sandboxes_resume(struct call *call, struct err *err)
{
	json_t *hidden = NULL;
	const char *id = NULL;
	int r = find_resting(call, &id, err);

	if (r == 0)
		r = network_use_again(call, id, &hidden, err);
	if (r == 0)
		r = by_launcher(call, "resume", hidden, err);
	json_decref(hidden);
	return r;
}

/* A new sandbox of a resting one's files. */
static int fork_one(struct call *call, struct err *err)
{
	scoped_mem char *output = NULL;
	json_t *hidden = NULL;
	const char *id = NULL;
	char made[ID_SIZE] = "";
	int r = find_resting(call, &id, err);

	if (r == 0)
		r = network_use_again(call, id, &hidden, err);
	if (r == 0)
		r = launcher_ask_verb(call,
			&(struct launcher_verb){
				.verb = "fork", .sandbox = id, .hidden = hidden, .stdout_fd = -1},
			&output, err);
	json_decref(hidden);
	if (r < 0)
		return r;
	snprintf(made, sizeof(made), "%.*s", ID_LEN, output ? output : "");
	r = enter(call, made, id, err);
	if (r == 0)
		r = network_use_copy(call, id, made, err);
	return r < 0 ? undo(call, made, r) : 0;
}

int api_sandboxes_fork(struct call *call, struct err *err)
{
	return within_quota(call, fork_one, err);
}

/* What is left of one that has ended. */
int api_records_delete(struct call *call, struct err *err)
{
	char state[16] = "";
	const char *id = NULL;
	int r = api_sandbox_id(call, &id, state, err);

	if (r == 0 && strcmp(state, "ended") != 0)
		return err_set(err, -EBADFD,
			"sandbox %s is %s: end it first, by DELETE /v1/sandboxes/%s", id, state,
			id);
	return r < 0 ? r : retention_forget(call, id, "removed", err);
}

/* Ends it; the record and changes that were not taken stay. */
int api_sandboxes_delete(struct call *call, struct err *err)
{
	int r = by_launcher(call, "rm", NULL, err);

	if (r == 0)
		r = launcher_ask_audit(
			call, "sandbox.removed", call->params[0], call->params[0], NULL, err);
	return r;
}
