/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/ask.h"

#include <stdlib.h>

#include "gateway/gateway_internal.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/map.h"
#include "util/mem.h"

#define ANSWER_NS   (60 * CLOCK_NS_PER_S)
#define OPEN_MAX    64 /* questions at once; further ones are refused, so that a scan asks nobody */
#define ANSWERS_MAX 4096 /* remembered; beyond, all are forgotten */

enum answer {
	NONE,
	ALLOWED,
	REFUSED,
};

struct question {
	struct asks *all;
	struct question *next, **at;
	uint64_t id;
	struct str place; /* "host:port/tcp" */
	struct ask *first;
	struct flow_head head; /* of who asked first */
	struct poller_timer timer;
	int64_t since_ns;
	enum answer known; /* from before: told by the timer at once */
};

struct ask {
	struct question *question; /* NULL: being answered */
	struct ask *next, **at;
	void (*on_answer)(void *ctx, bool is_allowed);
	void *ctx;
};

struct asks {
	struct gateway *gw;
	struct question *first;
	struct map *answers; /* place to enum answer */
	uint64_t last_id;
	size_t n_open;
};

struct asks *ask_all_new(struct gateway *gw)
{
	struct asks *asks = new0(struct asks);

	asks->gw = gw;
	asks->answers = map_new();
	return asks;
}

static void question_free(struct question *question)
{
	poller_timer_stop(question->all->gw->poller, &question->timer);
	*question->at = question->next;
	if (question->next)
		question->next->at = question->at;
	question->all->n_open--;
	str_done(&question->place);
	flow_head_done(&question->head);
	free(question);
}

void ask_cancel(struct ask *ask)
{
	if (!ask)
		return;
	*ask->at = ask->next;
	if (ask->next)
		ask->next->at = ask->at;
	if (ask->question && !ask->question->first)
		question_free(ask->question);
	free(ask);
}

void ask_all_free(struct asks *asks)
{
	if (!asks)
		return;
	while (asks->first) {
		while (asks->first->first->next)
			ask_cancel(asks->first->first);
		ask_cancel(asks->first->first);
	}
	map_free(asks->answers);
	free(asks);
}

void ask_all_forget(struct asks *asks)
{
	map_free(asks->answers);
	asks->answers = map_new();
}

/* Whoever is told may ask again, or cancel the others. */
static void tell_all(struct question *question, bool is_allowed)
{
	struct ask *waiting = question->first;

	question->first = NULL;
	for (struct ask *ask = waiting; ask; ask = ask->next)
		ask->question = NULL;
	if (waiting)
		waiting->at = &waiting;
	question_free(question);
	while (waiting) {
		void (*on_answer)(void *, bool) = waiting->on_answer;
		void *ctx = waiting->ctx;

		ask_cancel(waiting);
		on_answer(ctx, is_allowed);
	}
}

static void remember(struct asks *asks, struct slice place, enum answer answer)
{
	if (map_len(asks->answers) >= ANSWERS_MAX)
		ask_all_forget(asks);
	*map_slot(asks->answers, place) = (void *)(uintptr_t)answer;
}

void ask_all_answer(struct asks *asks, uint64_t id, bool is_allowed)
{
	struct question *question = asks->first;

	while (question && question->id != id)
		question = question->next;
	if (!question)
		return;
	remember(asks, str_slice(&question->place), is_allowed ? ALLOWED : REFUSED);
	tell_all(question, is_allowed);
}

/* The supervisor writes net.asked with who answered; nobody did. */
static void tell_silence(struct question *question)
{
	struct gateway *gw = question->all->gw;
	struct event ev = flow_head_event(&question->head, EVENT_NET_ASKED);

	event_set_text(&ev, answer, "refused");
	event_set_text(&ev, reason, "nobody answered within 60 s");
	event_set(&ev, duration_ns, poller_now_ns(gw->poller) - question->since_ns);
	channel_event(gw->channel, question->head.owner.cgroup, &ev);
}

static void on_time(void *ctx)
{
	struct question *question = ctx;

	if (question->known == NONE)
		tell_silence(question);
	tell_all(question, question->known == ALLOWED);
}

static void send_question(struct question *question)
{
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);
	const struct flow_head *head = &question->head;
	struct gateway_frame frame = {.type = GATEWAY_ASK, .id = question->id};

	jsonw_object(&j);
	jsonw_ktext(&j, "host", head->host);
	jsonw_ktext(&j, "address", head->address_text);
	jsonw_kint(&j, "port", head->port);
	jsonw_ktext(&j, "protocol", head->protocol);
	jsonw_kint(&j, "pid", head->owner.pid);
	jsonw_object_end(&j);
	frame.rest = str_slice(&text);
	channel_frame(question->all->gw->channel, &frame);
}

static struct question *question_new(struct asks *asks, const struct flow_head *head)
{
	struct question *question = new0(struct question);

	question->all = asks;
	question->id = ++asks->last_id;
	question->since_ns = poller_now_ns(asks->gw->poller);
	flow_head_init(&question->head, head->protocol, head->address, head->port, head->host,
		&head->owner);
	question->next = asks->first;
	question->at = &asks->first;
	if (question->next)
		question->next->at = &question->next;
	asks->first = question;
	asks->n_open++;
	question->timer = (struct poller_timer){.on_time = on_time, .ctx = question};
	return question;
}

static struct question *find_or_ask(struct asks *asks, const struct flow_head *head)
{
	scoped_str struct str place = {0};
	struct question *question = asks->first;

	str_printf(&place, "%s:%u/%s", head->host ? head->host : head->address_text, head->port,
		head->protocol);
	while (question && !slice_eq(str_slice(&question->place), str_slice(&place)))
		question = question->next;
	if (question)
		return question;
	question = question_new(asks, head);
	str_add(&question->place, place.p, place.len);
	question->known = (enum answer)(uintptr_t)map_find(asks->answers, str_slice(&place));
	if (question->known == NONE && asks->n_open > OPEN_MAX)
		question->known = REFUSED;
	poller_timer_set(
		asks->gw->poller, &question->timer, question->known == NONE ? ANSWER_NS : 0);
	if (question->known == NONE)
		send_question(question);
	return question;
}

struct ask *ask_start(struct gateway *gw, const struct flow_head *head,
	void (*on_answer)(void *ctx, bool is_allowed), void *ctx)
{
	struct question *question = find_or_ask(gw->asks, head);
	struct ask *ask = new0(struct ask);

	*ask = (struct ask){.question = question, .on_answer = on_answer, .ctx = ctx};
	ask->next = question->first;
	ask->at = &question->first;
	if (ask->next)
		ask->next->at = &ask->next;
	question->first = ask;
	return ask;
}
