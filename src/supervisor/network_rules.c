/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/network_rules.h"

#include <errno.h>

#include "supervisor/network.h"
#include "util/mem.h"

#define ADDED_MAX 10000 /* rules in one request */

void network_rules_say(struct supervisor *sup, const char *actor)
{
	const struct spec_network *network = &sup->spec->network;
	size_t n = network->allow.n + network->deny.n;
	scoped_mem struct slice *items = new0_n(struct slice, n + 1);
	char **texts = new0_n(char *, n + 1);
	struct event ev = {.kind = EVENT_NET_RULES};

	for (size_t i = 0; i < n; i++) {
		bool is_allow = i < network->allow.n;

		texts[i] = mem_printf("%s %s", is_allow ? "allow" : "deny",
			is_allow ? network->allow.items[i]
				 : network->deny.items[i - network->allow.n]);
		items[i] = slice_of(texts[i]);
	}
	event_set(&ev, rules, ((struct event_list){.items = items, .n = n}));
	event_set_text(&ev, actor, actor);
	recorder_emit_now(sup->recorder, &ev);
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
	free(texts);
}

static void copy(const struct spec_network *from, struct spec_network *to)
{
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);

	spec_network_init(to);
	spec_network_write(&j, from, false);
	if (spec_network_read(to, str_slice(&text), NULL) < 0)
		abort(); /* our own writing */
}

static int add_words(
	struct spec_words *words, const json_t *list, const char *name, struct err *err)
{
	const json_t *item;
	size_t i;

	if (list && (!json_is_array(list) || json_array_size(list) > ADDED_MAX))
		return err_set(err, -EINVAL, "'%s' is a list of at most %d rules", name, ADDED_MAX);
	json_array_foreach(list, i, item)
	{
		if (!json_is_string(item))
			return err_set(err, -EINVAL, "'%s' is a list of rules, each a text", name);
		spec_words_add(words, json_string_value(item));
	}
	return 0;
}

static int add_sets(struct spec_network *network, const json_t *sets, struct err *err)
{
	scoped_mem char *inner = sets ? json_dumps(sets, JSON_COMPACT) : NULL;
	scoped_mem char *text = inner ? mem_printf("{\"sets\":%s}", inner) : NULL;

	return text ? spec_network_read(network, slice_of(text), err) : 0;
}

static int change(struct spec_network *network, const json_t *body, struct err *err)
{
	int r;

	if (json_is_true(json_object_get(body, "reset"))) {
		spec_words_done(&network->allow);
		spec_words_done(&network->deny);
	}
	r = add_words(&network->allow, json_object_get(body, "allow"), "allow", err);
	if (r == 0)
		r = add_words(&network->deny, json_object_get(body, "deny"), "deny", err);
	if (r == 0)
		r = add_sets(network, json_object_get(body, "sets"), err);
	return r < 0 ? r : spec_network_check(network, err);
}

static int replace(struct supervisor *sup, const json_t *body, struct err *err)
{
	const char *actor = json_string_value(json_object_get(body, "actor"));
	struct spec_network network;
	int r;

	if (sup->spec->network.net == SPEC_NET_NONE)
		return err_set(err, -EINVAL, "this sandbox has no network that rules could be for");
	copy(&sup->spec->network, &network);
	r = change(&network, body, err);
	if (r < 0) {
		spec_network_done(&network);
		return r;
	}
	spec_network_done(&sup->spec->network);
	sup->spec->network = network;
	network_rules_changed(sup);
	network_rules_say(sup, actor);
	recorder_flush(sup->recorder, sup->spec->durable);
	return 0;
}

int network_rules_request(
	struct supervisor *sup, const json_t *body, struct str *out, struct err *err)
{
	static const char *const changes[] = {"allow", "deny", "sets", "reset"};
	struct jsonw j = jsonw_to(out);
	bool is_change = false;
	int r;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		is_change |= json_object_get(body, changes[i]) != NULL;
	r = is_change ? replace(sup, body, err) : 0;
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
	int r = body ? replace(sup, body, err) : -EINVAL;

	json_decref(body);
	return r;
}
