/* SPDX-License-Identifier: Apache-2.0 */
/* create: the options as a spec, which the server's own `cloche create` reads. */
#include "remote/remote_create.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/spec_asked.h"
#include "remote/address.h"
#include "remote/remote_life.h"
#include "remote/remote_verbs.h"
#include "util/mem.h"
#include "util/scoped.h"

static int check(const struct verb *verb, const struct create_options *o)
{
	static const char not [] = "not with a server";

	if (o->agent && strcmp(o->agent, "none") != 0)
		return remote_verbs_refuse(verb, "--agent not with a server",
			"it shows folders of the host that it runs on; name mounts, secrets and "
			"rules one by one");
	if (o->image.pull)
		return remote_verbs_refuse(verb, "--pull not with a server",
			"the server fetches an image once; `cloche gc` on its host removes it");
	if (o->secret_files.n > 0)
		return remote_verbs_refuse(verb, "--secret-file not with a server",
			"the values of secrets are kept by it: `cloche secrets create NAME`");
	if (o->hidden || o->within)
		return remote_verbs_refuse(
			verb, not, "--hidden and --within are for the server's own use");
	return 0;
}

void remote_create_add_proxy(const struct spec_network *net, struct str *url)
{
	const char *sign = strstr(net->upstream_proxy, "://");
	size_t scheme = sign ? (size_t)(sign - net->upstream_proxy) + strlen("://") : 0;

	str_add(url, net->upstream_proxy, scheme);
	if (net->proxy_user) {
		address_add_part(url, net->proxy_user);
		str_putc(url, ':');
		address_add_part(url, net->proxy_password ? net->proxy_password : "");
		str_putc(url, '@');
	}
	str_puts(url, net->upstream_proxy + scheme);
}

/* What was not named is left to the account; whether it is traced is said in any case, since a server does unless told not to. */
static json_t *make_spec(const struct spec *spec)
{
	json_t *asked = spec_asked(spec), *network = json_object_get(asked, "network");
	scoped_secret struct str proxy = {0};

	if (!network && spec->network.has_net) {
		network = json_object();
		json_object_set_new(asked, "network", network);
	}
	if (spec->network.has_net)
		json_object_set_new(network, "net", json_string(spec_net_name(spec->network.net)));
	if (spec->network.upstream_proxy) {
		remote_create_add_proxy(&spec->network, &proxy);
		json_object_set_new(network, "upstream_proxy", json_string(proxy.p));
	}
	if (!spec->trace)
		json_object_set_new(asked, "trace", json_false());
	return asked;
}

int remote_create_sandbox(const struct cli *cli, const struct verb *verb,
	const struct create_options *o, char ret_id[ID_SIZE], struct err *err)
{
	json_t *spec, *made = NULL;
	const char *id;
	int r = check(verb, o);

	if (r != 0)
		return r;
	spec = make_spec(o->spec);
	r = remote_life_ask(cli,
		&(struct remote_life_ask){.method = "POST", .body = spec, .once = true}, &made,
		err);
	json_decref(spec);
	id = json_string_value(json_object_get(made, "id"));
	if (r == 0 && !(id && id_is_valid("sb", id)))
		r = err_set(err, -EIO, "the answer names no sandbox: is it a control plane?");
	if (r == 0)
		memcpy(ret_id, id, ID_SIZE);
	json_decref(made);
	return r;
}

int remote_create(const struct cli *cli, void *options, char **args, size_t n_args, struct err *err)
{
	scoped_str struct str line = {0};
	char id[ID_SIZE];
	int r = remote_create_sandbox(cli, &verb_create, options, id, err);

	if (r != 0)
		return r;
	str_printf(&line, "%s\n", id);
	return cli_print(&line, err);
}
