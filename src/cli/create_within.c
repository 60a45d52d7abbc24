/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/create_within.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>

#include "spec/spec_rule.h"
#include "util/fdio.h"
#include "util/path.h"
#include "util/scoped.h"

#define FILE_MAX (1u << 20)

static bool is_beneath_any(const char *path, const json_t *roots)
{
	for (size_t i = 0; i < json_array_size(roots); i++) {
		const char *root = json_string_value(json_array_get(roots, i));

		if (root && path_is_beneath(slice_of(path), slice_of(root)))
			return true;
	}
	return false;
}

static int check_folders(const struct spec *spec, const json_t *roots, struct err *err)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (!is_beneath_any(spec->mounts[i].host, roots))
			return err_set(err, -EPERM,
				"mount of '%s': this account may not use that folder of the host",
				spec->mounts[i].host);
	if (spec->rootfs && !is_beneath_any(spec->rootfs, roots))
		return err_set(err, -EPERM,
			"rootfs '%s': this account may not use that folder of the host",
			spec->rootfs);
	return 0;
}

static int check_image(const struct spec *spec, const json_t *images, struct err *err)
{
	for (size_t i = 0; spec->image && i < json_array_size(images); i++) {
		const char *prefix = json_string_value(json_array_get(images, i));

		if (prefix && strncmp(spec->image, prefix, strlen(prefix)) == 0)
			return 0;
	}
	return spec->image ? err_set(err, -EPERM, "image '%s': this account may not use it",
				     spec->image)
	                   : 0;
}

/* A rule that names an address leads there, wherever that is; beside "open", so does a name that somebody made lead
 * inward (spec.md). Sets are the host's own. */
static int check_rule(const struct spec_network *net, const char *text, struct err *err)
{
	struct spec_rule rule;
	bool is_address;

	if (text[0] == '@')
		return 0;
	if (net->net == SPEC_NET_OPEN)
		return err_set(err, -EPERM,
			"rule '%s': beside \"open\" it may lead to private addresses, which this "
			"account may not reach",
			text);
	if (spec_rule_parse(text, &rule, err) < 0)
		return -EINVAL;
	is_address = rule.kind == SPEC_RULE_ADDRESS;
	spec_rule_done(&rule);
	return is_address ? err_set(err, -EPERM,
				    "rule '%s': this account may name hosts, not addresses", text)
	                  : 0;
}

static int check_network(const struct spec_network *net, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < net->allow.n; i++)
		r = check_rule(net, net->allow.items[i], err);
	if (r == 0 && net->shadow)
		r = err_set(err, -EPERM, "shadow: this account's rules hold");
	if (r == 0 && net->n_maps > 0)
		r = err_set(err, -EPERM, "host_map: this account may not map names to addresses");
	if (r == 0 && net->resolvers.n > 0)
		r = err_set(err, -EPERM, "resolver: this account may not choose one");
	if (r == 0 && net->upstream_ca)
		r = err_set(err, -EPERM, "upstream_ca: this account may not add authorities");
	if (r == 0 && net->upstream_proxy)
		r = err_set(err, -EPERM, "upstream_proxy: this account may not choose one");
	if (r == 0 && net->n_publish > 0)
		r = err_set(err, -EPERM,
			"publish: this account may not open ports of the host: make a preview");
	return r;
}

int create_within_check(const struct spec *spec, const char *file, struct err *err)
{
	scoped_str struct str text = {0};
	json_t *within;
	int r = fdio_read_file(AT_FDCWD, file, FILE_MAX, &text);

	if (r < 0)
		return err_set(err, r, "read '%s': %m", file);
	within = json_loadb(text.p, text.len, 0, NULL);
	if (!json_is_object(within))
		r = err_set(err, -EINVAL, "'%s' holds no JSON object", file);
	if (r == 0)
		r = check_folders(spec, json_object_get(within, "host_roots"), err);
	if (r == 0)
		r = check_image(spec, json_object_get(within, "images"), err);
	if (r == 0 && !json_is_true(json_object_get(within, "private")))
		r = check_network(&spec->network, err);
	if (r == 0 && spec->record_raw && !json_is_true(json_object_get(within, "raw")))
		r = err_set(err, -EPERM, "record_raw: this account's records are redacted");
	json_decref(within);
	return r;
}
