/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/network_rules.h"

#include <errno.h>
#include <string.h>

#include "supervisor/network.h"
#include "util/jsonw.h"
#include "util/mem.h"

static void add_items(
	struct spec_words *out, const char *word, const struct spec_network *net, bool is_allow)
{
	const struct spec_words *words = is_allow ? &net->allow : &net->deny;

	for (size_t i = 0; i < words->n; i++) {
		scoped_mem char *text = mem_printf("%s %s", word, words->items[i]);

		spec_words_add(out, text);
	}
}

void network_rules_say(struct supervisor *sup, const char *actor)
{
	const struct spec_network *net = &sup->spec->network;
	struct event ev = {.kind = EVENT_NET_RULES};
	struct spec_words texts = {0};
	struct slice *items;

	add_items(&texts, "allow", net, true);
	add_items(&texts, "deny", net, false);
	items = new0_n(struct slice, texts.n);
	for (size_t i = 0; i < texts.n; i++)
		items[i] = slice_of(texts.items[i]);
	event_set(&ev, rules, ((struct event_list){.items = items, .n = texts.n}));
	event_set_text(&ev, actor, actor);
	recorder_emit_now(sup->recorder, &ev);
	free(items);
	spec_words_done(&texts);
}

static void format(const struct spec_network *net, bool for_record, struct str *out)
{
	struct jsonw j = jsonw_to(out);

	spec_network_write(&j, net, for_record);
}

/* What was asked at creation is kept before it is changed for the first time. */
static void keep_first(struct supervisor *sup)
{
	scoped_str struct str text = {0};

	if (sup->first_network)
		return;
	format(&sup->spec->network, false, &text);
	sup->first_network = str_take(&text);
}

static bool has_word(const struct spec_words *words, const char *word)
{
	for (size_t i = 0; i < words->n; i++)
		if (strcmp(words->items[i], word) == 0)
			return true;
	return false;
}

static void remove_word(struct spec_words *words, const char *word)
{
	size_t n = 0;

	for (size_t i = 0; i < words->n; i++)
		if (strcmp(words->items[i], word) == 0)
			free(words->items[i]);
		else
			words->items[n++] = words->items[i];
	words->n = n;
}

/* A list of texts, or nothing at all. */
static int add_words(struct spec_words *words, const json_t *body, const char *key, bool replace,
	struct err *err)
{
	const json_t *list = json_object_get(body, key);

	if (!list)
		return 0;
	if (!json_is_array(list))
		return err_set(err, -EINVAL, "'%s' must be a list of rules", key);
	if (replace)
		spec_words_done(words);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *rule = json_string_value(json_array_get(list, i));

		if (!rule)
			return err_set(err, -EINVAL, "'%s' must be a list of rules", key);
		if (!has_word(words, rule))
			spec_words_add(words, rule);
	}
	return 0;
}

static int remove_words(struct spec_network *net, const json_t *body, struct err *err)
{
	const json_t *list = json_object_get(body, "remove");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *rule = json_string_value(json_array_get(list, i));

		if (!rule || (!has_word(&net->allow, rule) && !has_word(&net->deny, rule)))
			return err_set(
				err, -ENOENT, "there is no rule '%s' to remove", rule ? rule : "");
		remove_word(&net->allow, rule);
		remove_word(&net->deny, rule);
	}
	return 0;
}

/* "sets" and "net", in the words of a spec. */
static int read_spec_part(struct spec_network *net, const json_t *body, struct err *err)
{
	static const char *const keys[] = {"sets", "net"};
	json_t *part = json_object();
	scoped_mem char *text = NULL;
	int r;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (json_object_get(body, keys[i]))
			(void)json_object_set(part, keys[i], json_object_get(body, keys[i]));
	text = json_dumps(part, JSON_COMPACT);
	json_decref(part);
	r = text ? spec_network_read(net, slice_of(text), err) : -ENOMEM;
	if (r == 0 && net->net == SPEC_NET_NONE)
		r = err_set(err, -EINVAL,
			"a running sandbox cannot be cut off by 'none': '--net allow' with no "
			"rules "
			"does that");
	return r;
}

static int change(struct spec_network *net, const json_t *body, struct err *err)
{
	bool replace = json_is_true(json_object_get(body, "replace"));
	int r = read_spec_part(net, body, err);

	if (r == 0)
		r = add_words(&net->allow, body, "allow", replace, err);
	if (r == 0)
		r = add_words(&net->deny, body, "deny", replace, err);
	if (r == 0)
		r = remove_words(net, body, err);
	return r < 0 ? r : spec_network_check(net, err);
}

/* Takes the rules of next into force. */
static void take_over(struct supervisor *sup, struct spec_network *next, const char *actor)
{
	struct spec_network before = sup->spec->network;

	keep_first(sup);
	sup->spec->network = *next;
	*next = before;
	network_rules_say(sup, actor);
	recorder_flush(sup->recorder, sup->spec->durable);
	network_rules_changed(sup);
}

/* What it was made with are its rules: the proxy is another matter. */
static void keep_proxy(const struct supervisor *sup, struct spec_network *next)
{
	free(next->upstream_proxy);
	next->upstream_proxy = mem_dup(sup->spec->network.upstream_proxy);
}

static int apply(struct supervisor *sup, const json_t *body, struct err *err)
{
	const char *actor = json_string_value(json_object_get(body, "actor"));
	bool reset = json_is_true(json_object_get(body, "reset"));
	scoped_str struct str text = {0};
	struct spec_network next;
	int r;

	if (!sup->network)
		return err_set(err, -ENETDOWN,
			"sandbox %s has no network: rules are for one made with '--net open' or "
			"'--net allow'",
			sup->id);
	if (reset && sup->first_network)
		str_puts(&text, sup->first_network);
	else
		format(&sup->spec->network, false, &text);
	spec_network_init(&next);
	r = spec_network_read(&next, str_slice(&text), err);
	keep_proxy(sup, &next);
	if (r == 0)
		r = change(&next, body, err);
	if (r == 0)
		take_over(sup, &next, actor);
	spec_network_done(&next);
	return r;
}

bool network_rules_is_change(const json_t *body)
{
	static const char *const keys[] = {"net", "reset", "allow", "deny", "remove"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (json_object_get(body, keys[i]))
			return true;
	return false;
}

int network_rules_request(
	struct supervisor *sup, const json_t *body, struct str *out, struct err *err)
{
	struct jsonw j = jsonw_to(out);
	int r = network_rules_is_change(body) ? apply(sup, body, err) : 0;

	if (r < 0)
		return r;
	jsonw_object(&j);
	jsonw_key(&j, "network");
	spec_network_write(&j, &sup->spec->network, true);
	jsonw_object_end(&j);
	return 0;
}

int network_rules_allow(
	struct supervisor *sup, const char *rule, const char *actor, struct err *err)
{
	json_t *body = json_pack("{s:[s],s:s*}", "allow", rule, "actor", actor);
	int r = body ? apply(sup, body, err) : -EINVAL;

	json_decref(body);
	return r;
}
