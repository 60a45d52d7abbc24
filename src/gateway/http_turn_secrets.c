/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets on their way through an exchange (secrets.h has the rules). */
#include <errno.h>

#include "gateway/http_turn.h"
#include "util/mem.h"

/* Of those that are bound to a host: whom the flow leads to (over TLS: whose certificate that is) and, where the request
 * names somebody, that name as well: what a request says of its host is the program's word, and not who reads it. */
static uint64_t bound_if(const struct http_turn *turn, bool verified)
{
	const struct http_setup *s = turn->setup;
	uint64_t bound =
		secrets_bound(s->secrets, s->name ? s->name : s->address, s->port, verified);

	if (turn->has_host)
		bound &= secrets_bound(s->secrets, turn->host.p, s->port, verified);
	return bound;
}

/* Likewise, those whose stand-in may pass in a body. */
static uint64_t passing_here(const struct http_turn *turn)
{
	const struct http_setup *s = turn->setup;
	uint64_t passing = secrets_passing(s->secrets, s->name ? s->name : s->address, s->port);

	if (turn->has_host)
		passing &= secrets_passing(s->secrets, turn->host.p, s->port);
	return passing;
}

/* Which secret, where it was, and what to do: for the agent, and through it for its user. */
static char *explain(const struct http_turn *turn, unsigned i, const char *where)
{
	const struct secrets *set = turn->setup->secrets;
	const char *name = secrets_name(set, i);
	scoped_str struct str hosts = {0};

	if (bound_if(turn, true) >> i & 1)
		return mem_printf("The stand-in of the secret %.60s is in the request's %s. Its "
				  "value may go to this host, but only inside TLS whose "
				  "certificate was verified: use https",
			name, where);
	secrets_add_hosts(set, i, &hosts);
	return mem_printf("The stand-in of the secret %.60s (what that variable holds in this "
			  "sandbox) is in the request's %s. It may go to %.100s only. Leave it "
			  "out of the %s. If it is needed here, the user can bind the secret to "
			  "this host (--secret %.60s@HOST)%s",
		name, where, hosts.p, where, name,
		strcmp(where, "body") == 0 ? " or let its stand-in pass in bodies (,pass=HOST)"
					   : "");
}

/* Both are told: what was tried, and the request that is refused for it. */
static int misuse(struct http_turn *turn, uint64_t found, const char *where)
{
	const struct http_setup *s = turn->setup;
	struct http_misuse m = {.host = turn->has_host ? turn->host.p : NULL,
		.port = turn->port ? turn->port : s->port,
		.where = where};
	unsigned i = (unsigned)__builtin_ctzll(found);
	scoped_mem char *reason = explain(turn, i, where);

	m.name = secrets_name(s->secrets, i);
	s->hooks->on_misuse(s->arg, &m);
	if (turn->sent.seen) {
		turn->error = "a secret's stand-in was on its way to where it must not go";
		http_turn_report(turn);
	}
	http_turn_refuse(turn, 403, "secret", reason);
	return -EACCES;
}

int http_turn_check_fields(struct http_turn *turn, const struct http1_field *fields, size_t n)
{
	const struct secrets *set = turn->setup->secrets;
	uint64_t foreign = set ? secrets_all(set) & ~turn->bound : 0;

	for (size_t i = 0; foreign && i < n; i++) {
		uint64_t found = secrets_find(set, foreign, fields[i].value);

		if (found)
			return misuse(turn, found, "header");
	}
	return 0;
}

static bool is_encoded(const struct http1_field *fields, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (http1_is(fields[i].name, "content-encoding") &&
			!http1_is(fields[i].value, "identity"))
			return true;
	return false;
}

/* Whoever was told a value once may say it again in any answer: over another port, without TLS, under another name. */
static uint64_t known_here(const struct http_turn *turn)
{
	const struct http_setup *s = turn->setup;

	return turn->bound | turn->answer.told | secrets_known(s->secrets, s->name) |
	       secrets_known(s->secrets, s->address) |
	       secrets_known(s->secrets, turn->has_host ? turn->host.p : NULL);
}

int http_turn_bind(struct http_turn *turn)
{
	const struct http_setup *s = turn->setup;
	uint64_t foreign, found;

	if (!s->secrets)
		return 0;
	turn->bound = bound_if(turn, s->verified);
	foreign = secrets_all(s->secrets) & ~turn->bound;
	turn->passing = passing_here(turn) & foreign;
	found = secrets_find(s->secrets, foreign, str_slice(&turn->path));
	if (found)
		return misuse(turn, found, "url");
	if (http_turn_check_fields(turn, turn->fields, turn->n_fields) < 0)
		return -EACCES;
	/* What is compressed can be neither read nor changed on its way. */
	if (!is_encoded(turn->fields, turn->n_fields))
		turn->out = (struct secrets_stream){
			.secrets = s->secrets, .put = turn->bound, .find = foreign};
	turn->back = (struct secrets_stream){.secrets = s->secrets, .back = known_here(turn)};
	return 0;
}

bool http_turn_has_secrets(const struct http_turn *turn)
{
	return turn->back.back != 0;
}

void http_turn_put_field(
	struct http_turn *turn, struct slice name, struct slice value, struct str *out)
{
	/* Answers that can hold the value have to be readable. */
	if (turn->back.back && http1_is(name, "accept-encoding"))
		str_puts(out, "identity");
	else if (turn->bound)
		turn->used |= secrets_put_field(turn->setup->secrets, turn->bound, value, out);
	else
		str_add(out, value.p, value.len);
}

void http_turn_put_path(struct http_turn *turn, struct str *out)
{
	if (turn->bound)
		turn->used |= secrets_put_path(
			turn->setup->secrets, turn->bound, str_slice(&turn->path), out);
	else
		str_add(out, turn->path.p, turn->path.len);
}

void http_turn_put_back(const struct http_turn *turn, char *p, size_t len)
{
	if (turn->back.back)
		secrets_put_back(turn->setup->secrets, turn->back.back, p, len);
}

static int check_stream(struct http_turn *turn)
{
	uint64_t refused = turn->out.found & ~turn->passing;

	turn->used |= turn->out.done;
	turn->passed |= turn->out.found & turn->passing;
	return refused ? misuse(turn, refused, "body") : 0;
}

int http_turn_send(
	struct http_turn *turn, struct slice data, struct str *scratch, struct slice *ret_data)
{
	http_copy_add(&turn->sent, data);
	*ret_data = data;
	if (!turn->out.secrets)
		return 0;
	str_reset(scratch);
	secrets_stream_add(&turn->out, data, scratch);
	*ret_data = str_slice(scratch);
	return check_stream(turn);
}

int http_turn_send_end(struct http_turn *turn, struct str *scratch, struct slice *ret_data)
{
	int r = 0;

	*ret_data = (struct slice){0};
	if (turn->out.secrets) {
		str_reset(scratch);
		secrets_stream_end(&turn->out, scratch);
		*ret_data = str_slice(scratch);
		r = check_stream(turn);
	}
	if (r == 0)
		turn->sent.whole = true;
	return r;
}

int http_turn_watch(struct http_turn *turn, struct slice data)
{
	scoped_str struct str passed = {0};

	if (!turn->out.find)
		return 0;
	secrets_stream_add(&turn->out, data, &passed);
	return check_stream(turn);
}

void http_turn_receive(
	struct http_turn *turn, struct slice data, struct str *scratch, struct slice *ret_data)
{
	*ret_data = data;
	if (turn->back.back) {
		str_reset(scratch);
		secrets_stream_add(&turn->back, data, scratch);
		*ret_data = str_slice(scratch);
	}
	http_copy_add(&turn->got, *ret_data);
}

void http_turn_receive_end(struct http_turn *turn, struct str *scratch, struct slice *ret_data)
{
	*ret_data = (struct slice){0};
	if (turn->back.back) {
		str_reset(scratch);
		secrets_stream_end(&turn->back, scratch);
		*ret_data = str_slice(scratch);
		http_copy_add(&turn->got, *ret_data);
	}
	turn->got.whole = true;
}
