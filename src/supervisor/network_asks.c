/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/network_asks.h"

#include <errno.h>
#include <string.h>

#include "supervisor/network.h"
#include "supervisor/network_rules.h"
#include "supervisor/running.h"
#include "util/clock.h"
#include "util/mem.h"

#define OPEN_MAX   256
#define OPEN_FOR_S 60 /* as the gateway waits: it says no itself then */

struct question {
	uint64_t id;   /* 0: none; the gateway's, which begins anew with each */
	uint64_t told; /* the one that people are told: never twice */
	json_t *place;
	int64_t asked_ns, asked_ms; /* monotonic; for people */
};

struct network_asks {
	struct question open[OPEN_MAX];
	uint64_t n_told;
};

struct network_asks *network_asks_new(void)
{
	return new0(struct network_asks);
}

static void close_question(struct question *question)
{
	json_decref(question->place);
	*question = (struct question){0};
}

void network_asks_forget(struct network_asks *asks)
{
	for (size_t i = 0; i < OPEN_MAX; i++)
		close_question(&asks->open[i]);
}

void network_asks_free(struct network_asks *asks)
{
	if (asks)
		network_asks_forget(asks);
	free(asks);
}

static bool is_open(const struct question *question)
{
	return question->id && clock_mono_ns() - question->asked_ns < OPEN_FOR_S * CLOCK_NS_PER_S;
}

static void add_place(struct event *ev, const json_t *place)
{
	ev->pid = json_integer_value(json_object_get(place, "pid"));
	event_set_text(ev, host, json_string_value(json_object_get(place, "host")));
	event_set_text(ev, address, json_string_value(json_object_get(place, "address")));
	event_set_text(ev, protocol, json_string_value(json_object_get(place, "protocol")));
	event_set(ev, port, json_integer_value(json_object_get(place, "port")));
}

/* Whoever waits for it reads it in the log, at once. */
static void say_held(struct supervisor *sup, const struct question *question)
{
	struct event ev = {.kind = EVENT_NET_HELD};

	add_place(&ev, question->place);
	event_set(&ev, ask, (event_int)question->told);
	recorder_emit_now(sup->recorder, &ev);
	recorder_flush(sup->recorder, false);
}

static void say(struct supervisor *sup, const struct question *question, bool is_allowed,
	const char *actor, const char *reason)
{
	struct event ev = {.kind = EVENT_NET_ASKED};

	add_place(&ev, question->place);
	event_set(&ev, ask, (event_int)question->told);
	event_set_text(&ev, answer, is_allowed ? "allowed" : "refused");
	event_set_text(&ev, actor, actor);
	event_set_text(&ev, reason, reason);
	event_set(&ev, duration_ns, clock_mono_ns() - question->asked_ns);
	recorder_emit_now(sup->recorder, &ev);
}

static void answer(struct supervisor *sup, struct question *question, bool is_allowed,
	const char *actor, const char *reason)
{
	say(sup, question, is_allowed, actor, reason);
	network_answer(sup, question->id, is_allowed);
	close_question(question);
}

static struct conn *find_client(const struct supervisor *sup)
{
	for (size_t i = 0; i < sup->n_execs; i++)
		if (running_conn(sup->execs[i]) && !conn_is_narrow(running_conn(sup->execs[i])))
			return running_conn(sup->execs[i]);
	return NULL;
}

static void pass_on(struct conn *conn, const struct question *question)
{
	json_t *message = json_deep_copy(question->place);
	scoped_mem char *text = NULL;

	json_object_set_new(message, "ask", json_integer((json_int_t)question->told));
	text = json_dumps(message, JSON_COMPACT);
	conn_send(conn, WIRE_JSON, slice_of(text));
	json_decref(message);
}

void network_asks_take(
	struct supervisor *sup, struct network_asks *asks, const struct gateway_frame *frame)
{
	struct conn *conn = find_client(sup);
	json_t *place = json_loadb(frame->rest.p, frame->rest.len, JSON_REJECT_DUPLICATES, NULL);
	struct question *question = NULL;

	for (size_t i = 0; i < OPEN_MAX && !question; i++)
		if (!is_open(&asks->open[i]))
			question = &asks->open[i];
	if (!json_is_object(place) || !question) {
		json_decref(place);
		network_answer(sup, frame->id, false);
		return;
	}
	close_question(question);
	*question = (struct question){.id = frame->id,
		.told = ++asks->n_told,
		.place = place,
		.asked_ns = clock_mono_ns(),
		.asked_ms = clock_wall_ms()};
	if (!conn && !sup->has_plane) {
		answer(sup, question, false, NULL, "nobody is there to be asked");
		return;
	}
	say_held(sup, question);
	if (conn)
		pass_on(conn, question);
}

/* The name that led there, else the address. */
static int allow_always(
	struct supervisor *sup, const json_t *place, const char *actor, struct err *err)
{
	const char *host = json_string_value(json_object_get(place, "host"));
	const char *address = json_string_value(json_object_get(place, "address"));
	int port = (int)json_integer_value(json_object_get(place, "port"));
	bool has_colon = !host && address && strchr(address, ':');
	scoped_mem char *rule = mem_printf(has_colon ? "[%s]:%d" : "%s:%d",
		host      ? host
		: address ? address
			  : "",
		port);

	return network_rules_allow(sup, rule, actor, err);
}

int network_asks_answer(struct supervisor *sup, struct network_asks *asks, const json_t *body,
	bool may_private, struct err *err)
{
	uint64_t id = (uint64_t)json_integer_value(json_object_get(body, "ask"));
	const char *actor = json_string_value(json_object_get(body, "actor"));
	bool is_allowed = json_is_true(json_object_get(body, "allow"));
	struct question *question = NULL;
	int r = 0;

	for (size_t i = 0; id && i < OPEN_MAX; i++)
		if (asks->open[i].told == id && is_open(&asks->open[i]))
			question = &asks->open[i];
	if (!question)
		return err_set(err, -ENOENT, "there is no such question (any more)");
	if (is_allowed && !may_private &&
		!json_string_value(json_object_get(question->place, "host")))
		return err_set(err, -EPERM,
			"it asks for an address: this account may allow hosts, not addresses; "
			"whoever runs the server can allow it (\"private\" in its configuration)");
	if (is_allowed && json_is_true(json_object_get(body, "always")))
		r = allow_always(sup, question->place, actor, err);
	answer(sup, question, is_allowed, actor,
		json_string_value(json_object_get(body, "reason")));
	return r;
}

static void add_time(json_t *item, const char *key, int64_t at_ms)
{
	char text[CLOCK_TEXT_LEN];

	clock_format(at_ms, text);
	json_object_set_new(item, key, json_string(text));
}

static json_t *describe(const struct question *question)
{
	json_t *item = json_deep_copy(question->place);

	json_object_set_new(item, "ask", json_integer((json_int_t)question->told));
	add_time(item, "asked_at", question->asked_ms);
	add_time(item, "expires_at", question->asked_ms + OPEN_FOR_S * 1000);
	return item;
}

/* The oldest that was asked behind another. */
static const struct question *find_next(const struct network_asks *asks, uint64_t told)
{
	const struct question *next = NULL;

	for (size_t i = 0; i < OPEN_MAX; i++)
		if (is_open(&asks->open[i]) && asks->open[i].told > told &&
			(!next || asks->open[i].told < next->told))
			next = &asks->open[i];
	return next;
}

void network_asks_write(const struct network_asks *asks, struct str *out)
{
	json_t *list = json_array();
	const struct question *question = asks ? find_next(asks, 0) : NULL;
	scoped_mem char *text = NULL;

	for (; question; question = find_next(asks, question->told))
		json_array_append_new(list, describe(question));
	text = json_dumps(list, JSON_COMPACT);
	str_printf(out, "{\"asks\":%s}", text ? text : "[]");
	json_decref(list);
}
