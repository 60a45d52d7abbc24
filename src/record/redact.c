/* SPDX-License-Identifier: Apache-2.0 */
#include "record/redact.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "record/redact_cut.h"
#include "record/redact_net.h"
#include "record/redact_rules.h"
#include "record/redact_scan.h"
#include "util/mem.h"

struct redact {
	struct redact_scan_rules rules;
	char *salt;
	uint64_t fields[EVENT_HAS_WORDS]; /* those that may hold secrets */
	struct event event;               /* the copy of the last event that did */
	void **owned;                     /* what that copy points to */
	size_t n_owned;
};

static const enum event_field fields_with_text[] = {EVENT_F_path, EVENT_F_cwd, EVENT_F_from,
	EVENT_F_to, EVENT_F_target, EVENT_F_data, EVENT_F_stdout_text, EVENT_F_stderr_text,
	EVENT_F_command, EVENT_F_task_text, EVENT_F_detail, EVENT_F_labels, EVENT_F_argv,
	EVENT_F_args, EVENT_F_url, EVENT_F_headers, EVENT_F_body, EVENT_F_response_headers,
	EVENT_F_response_body, EVENT_F_reason};

struct redact *redact_new(const char *salt)
{
	struct redact *redact = new0(struct redact);

	redact->salt = mem_dup(salt);
	redact->rules.salt = redact->salt;
	for (size_t i = 0; i < sizeof(fields_with_text) / sizeof(fields_with_text[0]); i++)
		redact->fields[fields_with_text[i] / 64] |= 1ULL << (fields_with_text[i] % 64);
	redact_scan_init();
	return redact;
}

static void drop_copies(struct redact *redact)
{
	for (size_t i = 0; i < redact->n_owned; i++)
		free(redact->owned[i]);
	redact->n_owned = 0;
}

void redact_free(struct redact *redact)
{
	if (!redact)
		return;
	drop_copies(redact);
	for (size_t i = 0; i < redact->rules.n_allowed; i++)
		free((char *)redact->rules.allowed[i].p);
	free(redact->rules.allowed);
	free(redact->owned);
	free(redact->salt);
	free(redact);
}

void redact_allow(struct redact *redact, struct slice text)
{
	struct redact_scan_rules *rules = &redact->rules;

	if (rules->n_allowed == REDACT_ALLOWED_MAX || text.len == 0)
		return;
	rules->allowed = mem_grow(rules->allowed, rules->n_allowed + 1, sizeof(struct slice));
	rules->allowed[rules->n_allowed++] =
		(struct slice){.p = mem_copy(text.p, text.len), .len = text.len};
}

bool redact_text(const struct redact *redact, struct slice text, struct str *out)
{
	return redact_scan_text(&redact->rules, text, false, out);
}

bool redact_text_cut(const struct redact *redact, struct slice text, bool is_tail, struct str *out)
{
	return redact_cut_text(&redact->rules, text, is_tail, out);
}

/* Keeps memory that the copied event points to. */
static void *own(struct redact *redact, void *p)
{
	redact->owned = mem_grow(redact->owned, redact->n_owned + 1, sizeof(void *));
	return redact->owned[redact->n_owned++] = p;
}

static struct slice own_text(struct redact *redact, struct str *text)
{
	struct slice kept = str_slice(text);

	(void)own(redact, str_take(text)); /* kept points there */
	return kept;
}

/* `sh -c SCRIPT`: what follows is a command line of its own. */
static bool is_script_option(struct slice word)
{
	return word.len >= 2 && word.len <= 6 && word.p[0] == '-' && word.p[1] != '-' &&
	       word.p[word.len - 1] == 'c';
}

/* What the word before says of an item: `--password X`, `curl -u NAME:X`. False: nothing. */
static bool redact_by_option(
	struct redact *redact, struct event_list list, size_t i, struct str *out)
{
	struct slice before = list.items[i - 1], item = list.items[i];
	const struct redact_rules_option *option = redact_rules_find_option(list.items[0], before);
	size_t from = 0;

	if (option && before.len == strlen(option->option)) {
		const char *colon = item.len ? memchr(item.p, ':', item.len) : NULL;

		if (option->after_colon && !colon)
			return false;
		from = option->after_colon ? (size_t)(colon - item.p) + 1 : 0;
	} else if (!slice_starts(before, "--") || memchr(before.p, '=', before.len) ||
		   slice_starts(item, "-") ||
		   !redact_rules_is_secret_name(
			   (struct slice){.p = before.p + 2, .len = before.len - 2})) {
		return false;
	}
	if (redact_scan_is_no_value((struct slice){.p = item.p + from, .len = item.len - from}))
		return false;
	return redact_scan_put(&redact->rules, item, from, out);
}

/* `sshpass -pSECRET`, `curl -uNAME:SECRET` */
static bool redact_glued(struct redact *redact, struct event_list list, size_t i, struct str *out)
{
	struct slice item = list.items[i];
	const struct redact_rules_option *option = redact_rules_find_option(list.items[0], item);
	size_t from = option ? strlen(option->option) : 0;
	const char *colon;

	if (!option || from == item.len)
		return false;
	colon = memchr(item.p, ':', item.len);
	if (option->after_colon && !colon)
		return false;
	if (option->after_colon)
		from = (size_t)(colon - item.p) + 1;
	if (redact_scan_is_no_value((struct slice){.p = item.p + from, .len = item.len - from}))
		return false;
	return redact_scan_put(&redact->rules, item, from, out);
}

static bool redact_item(struct redact *redact, struct event_list list, size_t i, struct str *out)
{
	if (i > 0 && (redact_by_option(redact, list, i, out) || redact_glued(redact, list, i, out)))
		return true;
	return redact_scan_text(
		&redact->rules, list.items[i], i == 0 || !is_script_option(list.items[i - 1]), out);
}

bool redact_list(struct redact *redact, struct event_list list, struct event_list *ret_list)
{
	struct slice *items = NULL;

	for (size_t i = 0; i < list.n; i++) {
		scoped_str struct str out = {0};

		if (!redact_item(redact, list, i, &out))
			continue;
		if (!items)
			items = own(redact, mem_copy(list.items, list.n * sizeof(struct slice)));
		items[i] = own_text(redact, &out);
	}
	if (items)
		*ret_list = (struct event_list){.items = items, .n = list.n};
	return items != NULL;
}

/* The event that redacted fields go to: the copy, made at the first of them. */
static struct event *copy_of(
	struct redact *redact, const struct event *ev, const struct event **kept)
{
	if (*kept == ev)
		redact->event = *ev;
	*kept = &redact->event;
	return &redact->event;
}

/* JSON that was made elsewhere is redacted as it stands; where that would break it, none of it is kept. */
static void mend_raw(struct str *raw)
{
	json_t *root = json_loadb(raw->p, raw->len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);

	json_decref(root);
	if (root)
		return;
	str_reset(raw);
	str_puts(raw, "\"[redacted]\"");
}

/* A text or JSON as its field has it; false: there is no secret in it. */
static bool redact_value(
	const struct redact *redact, const struct event *ev, int field, struct str *out)
{
	const struct event_field_info *info = &event_field_table[field];
	struct slice text = *(const struct slice *)((const char *)ev + info->offset);

	switch (field) {
	case EVENT_F_headers:
	case EVENT_F_response_headers:
		return redact_net_headers(&redact->rules, text, out);
	case EVENT_F_body:
		return redact_net_body(&redact->rules, text, ev->body_encoding, out);
	case EVENT_F_response_body:
		return redact_net_body(&redact->rules, text, ev->response_body_encoding, out);
	default:
		break;
	}
	if (!redact_text(redact, text, out))
		return false;
	if (info->type == EVENT_TYPE_raw)
		mend_raw(out);
	return true;
}

static void redact_field(
	struct redact *redact, const struct event *ev, int field, const struct event **kept)
{
	const struct event_field_info *info = &event_field_table[field];
	const void *at = (const char *)ev + info->offset;
	scoped_str struct str out = {0};
	struct event_list list;

	if (info->type == EVENT_TYPE_list) {
		if (redact_list(redact, *(const struct event_list *)at, &list))
			*(struct event_list *)((char *)copy_of(redact, ev, kept) + info->offset) =
				list;
	} else if (redact_value(redact, ev, field, &out)) {
		*(struct slice *)((char *)copy_of(redact, ev, kept) + info->offset) =
			own_text(redact, &out);
	}
}

const struct event *redact_event(struct redact *redact, const struct event *ev)
{
	const struct event *kept = ev;

	drop_copies(redact);
	for (int w = 0; w < EVENT_HAS_WORDS; w++)
		for (uint64_t bits = ev->has[w] & redact->fields[w]; bits; bits &= bits - 1)
			redact_field(redact, ev, w * 64 + __builtin_ctzll(bits), &kept);
	return kept;
}
