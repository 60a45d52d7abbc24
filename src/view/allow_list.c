/* SPDX-License-Identifier: Apache-2.0 */
#include "view/allow_list.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "util/jsonw.h"
#include "util/map.h"
#include "util/mem.h"
#include "view/refused_tries.h"

#define PLACES_MAX   4096 /* hosts with their ports */
#define REQUESTS_MAX 4096 /* methods and paths of all */
#define PATH_LONGEST 512  /* a longer path is a pattern from there on */

/* A method and path. */
struct request {
	char *rule;
	bool refused; /* and never let through */
};

struct place {
	char *host;   /* name, or address */
	int64_t port; /* 0: only looked up */
	bool refused; /* likewise */
	bool has_requests;
	struct request *requests;
	size_t n_requests;
};

struct allow_list {
	struct view_filter filter;
	struct refused_tries *tries;
	bool paths;
	struct map *by_name; /* "host\nport" to its place + 1 */
	struct place *places;
	size_t n_places, n_requests;
	size_t n_left_out;
};

struct allow_list *allow_list_new(const struct view_filter *filter, bool paths)
{
	struct allow_list *list = new0(struct allow_list);

	list->filter = *filter;
	list->paths = paths;
	list->tries = refused_tries_new();
	list->by_name = map_new();
	return list;
}

void allow_list_free(struct allow_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->n_places; i++) {
		struct place *place = &list->places[i];

		for (size_t k = 0; k < place->n_requests; k++)
			free(place->requests[k].rule);
		free(place->requests);
		free(place->host);
	}
	free(list->places);
	map_free(list->by_name);
	refused_tries_free(list->tries);
	free(list);
}

/* What a rule may hold: everything from inside lies. */
static bool is_host(struct slice host)
{
	for (size_t i = 0; i < host.len; i++)
		if (!isalnum((unsigned char)host.p[i]) && !strchr(".-_:", host.p[i]))
			return false;
	return host.len > 0 && host.len < 256;
}

static struct place *find_place(struct allow_list *list, struct slice host, int64_t port)
{
	scoped_mem char *key = mem_printf("%.*s\n%d", (int)host.len, host.p, (int)port);
	void **slot = map_slot(list->by_name, slice_of(key));
	size_t at = (size_t)*slot;

	if (at == 0) {
		if (list->n_places == PLACES_MAX) {
			(void)map_remove(list->by_name, slice_of(key)); /* it holds nothing */
			list->n_left_out++;
			return NULL;
		}
		list->places = mem_grow(list->places, list->n_places + 1, sizeof(struct place));
		list->places[list->n_places++] = (struct place){
			.host = mem_copy(host.p, host.len), .port = port, .refused = true};
		at = list->n_places;
		*slot = (void *)at;
	}
	return &list->places[at - 1];
}

/* Private and shared addresses: refused unless a rule names them, whatever name led there. */
static bool is_inward(struct slice address)
{
	scoped_mem char *text = mem_copy(address.p, address.len);
	unsigned char a[16];

	if (inet_pton(AF_INET, text, a) == 1)
		return a[0] == 10 || (a[0] == 172 && (a[1] & 0xf0) == 16) ||
		       (a[0] == 192 && a[1] == 168) || (a[0] == 100 && (a[1] & 0xc0) == 64);
	return inet_pton(AF_INET6, text, a) == 1 && (a[0] & 0xfe) == 0xfc;
}

/* One byte of a path, decoded, which moves *i behind it; -1 where no rule matches a path that holds it. */
static int next_byte(struct slice path, size_t *i)
{
	char hex[] = {'\0', '\0', '\0'};
	int code = (unsigned char)path.p[(*i)++];

	if (code != '%')
		return code == '\\' ? -1 : code;
	if (*i + 2 > path.len || !isxdigit((unsigned char)path.p[*i]) ||
		!isxdigit((unsigned char)path.p[*i + 1]))
		return -1;
	memcpy(hex, path.p + *i, 2);
	*i += 2;
	code = (int)strtol(hex, NULL, 16);
	return code == '/' || code == '%' || code == '\\' || code == '.' ? -1 : code;
}

/* The path as rules have it: without its query, decoded, "*" for what a rule cannot write. False for one that no
 * rule can match. */
static bool write_path(struct str *out, struct slice path)
{
	size_t i = 0;

	while (i < path.len && path.p[i] != '?' && path.p[i] != '#') {
		int code = i < PATH_LONGEST ? next_byte(path, &i) : '*';
		bool is_plain = isgraph(code) && !strchr("%?#*", code);

		if (code < 0)
			return false;
		if (is_plain)
			str_putc(out, (char)code);
		else if (out->len == 0 || out->p[out->len - 1] != '*')
			str_putc(out, '*');
		if (i >= PATH_LONGEST) {
			str_puts(out, "**");
			break;
		}
	}
	return out->len > 0 && !strstr(out->p, "//") && !strstr(out->p, "/./") &&
	       !strstr(out->p, "/../") && !slice_ends(str_slice(out), "/..") &&
	       !slice_ends(str_slice(out), "/.");
}

static void add_path(struct str *out, struct slice path)
{
	scoped_str struct str text = {0};

	str_puts(out, write_path(&text, path) ? text.p : "/**");
}

static void add_place(struct str *out, const struct place *place)
{
	bool is_v6 = strchr(place->host, ':') != NULL;

	if (place->port)
		str_printf(out, is_v6 ? "[%s]:%d" : "%s:%d", place->host, (int)place->port);
	else
		str_puts(out, place->host);
}

/* "https://host:8443/path" to "/path". */
static struct slice path_of(struct slice url)
{
	const char *at = url.len > 3 ? memmem(url.p, url.len, "://", 3) : NULL;
	const char *slash;

	if (!at)
		return url;
	at += 3;
	slash = memchr(at, '/', (size_t)(url.p + url.len - at));
	return slash ? (struct slice){.p = slash, .len = (size_t)(url.p + url.len - slash)}
	             : slice_of("/");
}

static void add_request(
	struct allow_list *list, struct place *place, const struct event *ev, bool refused)
{
	scoped_str struct str rule = {0};

	for (size_t i = 0; i < ev->method.len; i++)
		if (!isalpha((unsigned char)ev->method.p[i]) && ev->method.p[i] != '-')
			return;
	if (ev->method.len == 0 || ev->method.len > 32)
		return;
	str_printf(&rule, "%.*s ", (int)ev->method.len, ev->method.p);
	add_place(&rule, place);
	add_path(&rule, path_of(ev->url));
	place->has_requests = true;
	for (size_t i = 0; i < place->n_requests; i++)
		if (strcmp(place->requests[i].rule, rule.p) == 0) {
			place->requests[i].refused &= refused;
			return;
		}
	if (list->n_requests == REQUESTS_MAX) {
		list->n_left_out++;
		return;
	}
	list->n_requests++;
	place->requests = mem_grow(place->requests, place->n_requests + 1, sizeof(struct request));
	place->requests[place->n_requests++] =
		(struct request){.rule = str_take(&rule), .refused = refused};
}

static void add_reached(struct allow_list *list, const struct event *ev, bool refused)
{
	struct slice host = event_has(ev, host) ? ev->host : ev->address;
	int64_t port = event_has(ev, port) ? ev->port : 0;
	struct place *place = is_host(host) ? find_place(list, host, port) : NULL;

	if (!place)
		return;
	place->refused &= refused;
	if (event_has(ev, method) && event_has(ev, url))
		add_request(list, place, ev, refused);
	if (event_has(ev, host) && event_has(ev, address) && is_host(ev->address) &&
		is_inward(ev->address)) {
		place = find_place(list, ev->address, port);
		if (place)
			place->refused &= refused;
	}
}

static void add_lookup(struct allow_list *list, const struct event *ev)
{
	bool refused = event_has(ev, refused) && ev->refused;
	struct place *place = NULL;

	if (is_host(ev->name) && (refused || !event_has(ev, error)))
		place = find_place(list, ev->name, 0);
	if (place)
		place->refused &= refused;
}

void allow_list_add(struct allow_list *list, const struct event *ev)
{
	if (refused_tries_ends(list->tries, ev) || !view_filter_takes(&list->filter, ev))
		return;
	if (ev->kind == EVENT_NET_DNS)
		add_lookup(list, ev);
	else if (ev->kind == EVENT_NET_CONNECT || ev->kind == EVENT_NET_UDP ||
		 ev->kind == EVENT_NET_HTTP)
		add_reached(list, ev, false);
	else if (ev->kind == EVENT_NET_REFUSED)
		add_reached(list, ev, !(event_has(ev, shadow) && ev->shadow));
}

/* A name that was looked up and then reached needs no rule for the look-up, nor one whose every try was refused. */
static bool is_shown(const struct allow_list *list, const struct place *place)
{
	if (place->port)
		return true;
	for (size_t i = 0; i < list->n_places; i++)
		if (list->places[i].port && strcmp(list->places[i].host, place->host) == 0)
			return false;
	return true;
}

typedef void (*show_fn)(void *ctx, const char *rule, bool refused);

static void show_all(const struct allow_list *list, show_fn show, void *ctx)
{
	scoped_str struct str rule = {0};

	for (size_t i = 0; i < list->n_places; i++) {
		const struct place *place = &list->places[i];

		if (!is_shown(list, place))
			continue;
		for (size_t k = 0; list->paths && k < place->n_requests; k++)
			show(ctx, place->requests[k].rule, place->requests[k].refused);
		if (list->paths && place->has_requests)
			continue;
		str_reset(&rule);
		add_place(&rule, place);
		show(ctx, rule.p, place->refused);
	}
}

static void show_json(void *ctx, const char *rule, bool refused)
{
	struct jsonw *j = ctx;

	jsonw_object(j);
	jsonw_ktext(j, "rule", rule);
	jsonw_kbool(j, "refused", refused);
	jsonw_object_end(j);
}

void allow_list_json(struct allow_list *list, struct str *out)
{
	struct jsonw j = jsonw_to(out);

	jsonw_array(&j);
	show_all(list, show_json, &j);
	jsonw_array_end(&j);
}

static void show_needed(void *ctx, const char *rule, bool refused)
{
	if (!refused)
		str_printf(ctx, "%s\n", rule);
}

static void show_refused(void *ctx, const char *rule, bool refused)
{
	if (refused)
		str_printf(ctx, "# refused: %s\n", rule);
}

void allow_list_text(struct allow_list *list, const struct view_style *style, struct str *out)
{
	show_all(list, show_needed, out);
	show_all(list, show_refused, out);
	if (list->n_left_out)
		str_printf(out, "# %zu more were left out\n", list->n_left_out);
}
