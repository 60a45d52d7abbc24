/* SPDX-License-Identifier: Apache-2.0 */
/* Life of what a spec says about the network. */
#include "spec/spec_network.h"

#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

void spec_words_add(struct spec_words *words, const char *word)
{
	words->items = mem_grow(words->items, words->n + 1, sizeof(char *));
	words->items[words->n++] = mem_dup(word);
}

void spec_words_done(struct spec_words *words)
{
	for (size_t i = 0; i < words->n; i++)
		free(words->items[i]);
	free(words->items);
	*words = (struct spec_words){0};
}

void spec_network_init(struct spec_network *net)
{
	*net = (struct spec_network){.net = SPEC_NET_OPEN, .body_limit = SPEC_BODY_LIMIT};
}

/* Core files and reused memory are not to hold it. */
static void free_hidden(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

void spec_host_map_done(struct spec_host_map *map)
{
	free(map->name);
	free(map->address);
}

void spec_set_done(struct spec_set *set)
{
	free(set->name);
	spec_words_done(&set->rules);
}

void spec_secret_done(struct spec_secret *secret)
{
	free(secret->name);
	spec_words_done(&secret->hosts);
	spec_words_done(&secret->pass);
	free(secret->stand_in);
	free_hidden(secret->value);
}

void spec_network_done(struct spec_network *net)
{
	spec_words_done(&net->allow);
	spec_words_done(&net->deny);
	for (size_t i = 0; i < net->n_sets; i++)
		spec_set_done(&net->sets[i]);
	free(net->sets);
	for (size_t i = 0; i < net->n_maps; i++)
		spec_host_map_done(&net->maps[i]);
	free(net->maps);
	spec_words_done(&net->resolvers);
	spec_words_done(&net->tls_passthrough);
	free(net->upstream_ca);
	free(net->upstream_proxy);
	free_hidden(net->proxy_user);
	free_hidden(net->proxy_password);
	for (size_t i = 0; i < net->n_publish; i++)
		free(net->publish[i].address);
	free(net->publish);
	for (size_t i = 0; i < net->n_secrets; i++)
		spec_secret_done(&net->secrets[i]);
	free(net->secrets);
	*net = (struct spec_network){0};
}

void spec_network_settle(struct spec_network *net)
{
	if (!net->has_net && (net->allow.n || net->ask))
		net->net = SPEC_NET_ALLOW;
	net->has_net = true;
}

const char *spec_net_name(enum spec_net net)
{
	switch (net) {
	case SPEC_NET_NONE:
		return "none";
	case SPEC_NET_ALLOW:
		return "allow";
	case SPEC_NET_OPEN:
		return "open";
	}
	return "?";
}

const char *spec_tls_name(enum spec_tls tls)
{
	switch (tls) {
	case SPEC_TLS_INTERCEPT:
		return "intercept";
	case SPEC_TLS_PASSTHROUGH:
		return "passthrough";
	}
	return "?";
}
