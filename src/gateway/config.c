/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/mem.h"
#include "util/scoped.h"
#include "util/str.h"

#define FILE_MAX        (16u << 20)
#define RESOLV_CONF     "/etc/resolv.conf"
#define RESOLV_CONF_MAX 65536

void config_resolvers(struct slice text, struct spec_words *ret_words)
{
	static const char word[] = "nameserver";
	const char *p = text.p, *end = text.p + text.len;

	while (p < end) {
		const char *line_end = memchr(p, '\n', (size_t)(end - p));
		struct slice line = {.p = p, .len = (size_t)((line_end ? line_end : end) - p)};

		p += line.len + 1;
		if (!slice_starts(line, word) || line.len == strlen(word) ||
			!isblank((unsigned char)line.p[strlen(word)]))
			continue;
		line.p += strlen(word);
		line.len -= strlen(word);
		while (line.len > 0 && isblank((unsigned char)*line.p))
			line.p++, line.len--;
		for (size_t i = 0; i < line.len; i++)
			if (isspace((unsigned char)line.p[i]))
				line.len = i;
		if (line.len > 0) {
			scoped_mem char *server = mem_copy(line.p, line.len);

			spec_words_add(ret_words, server);
		}
	}
}

static void find_resolvers(struct config *config)
{
	scoped_str struct str text = {0};

	for (size_t i = 0; i < config->network.resolvers.n; i++)
		spec_words_add(&config->resolvers, config->network.resolvers.items[i]);
	if (config->resolvers.n > 0)
		return;
	if (fdio_read_file(AT_FDCWD, RESOLV_CONF, RESOLV_CONF_MAX, &text) == 0)
		config_resolvers(str_slice(&text), &config->resolvers);
}

/* What is hidden stands in lines of their own; each reader passes over what is not its. */
static int fill_hidden(const struct str *secrets, struct spec_network *network, struct err *err)
{
	const char *p, *end;
	int r = 0;

	for (p = secrets->p; r == 0 && p && *p; p = *end ? end + 1 : end) {
		end = strchrnul(p, '\n');
		if (end > p)
			r = spec_hidden_read(
				network, (struct slice){.p = p, .len = (size_t)(end - p)}, err);
	}
	return r;
}

int config_network(const struct config *config, struct slice json, struct spec_network *ret_network,
	struct err *err)
{
	int r = spec_network_read(ret_network, json, err);

	if (r == 0)
		r = fill_hidden(&config->secrets, ret_network, err);
	if (r == 0 && config->proxy.len)
		r = spec_hidden_read_proxy(ret_network, str_slice(&config->proxy), err);
	return r;
}

int config_set_proxy(struct config *config, struct slice json, struct err *err)
{
	int r = spec_hidden_read_proxy(&config->network, json, err);

	if (r < 0)
		return r;
	str_wipe(&config->proxy);
	str_add(&config->proxy, json.p, json.len);
	return 0;
}

static int read_network(struct config *config, const json_t *network, struct err *err)
{
	scoped_mem char *text = network ? json_dumps(network, JSON_COMPACT) : NULL;

	if (!text)
		return err_set(err, -EINVAL, "gateway: its configuration has no network");
	return config_network(config, slice_of(text), &config->network, err);
}

static int read_config(struct config *config, json_t *root, struct err *err)
{
	const char *sandbox = json_string_value(json_object_get(root, "sandbox"));
	json_int_t uid = json_integer_value(json_object_get(root, "uid"));

	if (!sandbox || uid <= 0 || uid >= UINT32_MAX)
		return err_set(err, -EINVAL, "gateway: its configuration has no sandbox or no uid");
	config->sandbox = mem_dup(sandbox);
	config->uid = (uid_t)uid;
	config->start_ns = json_integer_value(json_object_get(root, "start_ns"));
	return read_network(config, json_object_get(root, "network"), err);
}

/* One that is not open is empty. */
static int read_hidden(int fd, struct str *out, struct err *err)
{
	int r;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return errno == EBADF ? 0 : err_set(err, -errno, "gateway: read its secrets: %m");
	r = fdio_read_all(fd, FILE_MAX, out);
	return r < 0 ? err_set(err, r, "gateway: read its secrets: %m") : 0;
}

int config_read(struct config *config, int config_fd, int secrets_fd, int proxy_fd, struct err *err)
{
	scoped_str struct str text = {0};
	json_error_t why;
	json_t *root;
	int r;

	spec_network_init(&config->network);
	if (lseek(config_fd, 0, SEEK_SET) < 0)
		return err_set(err, -errno, "gateway: read its configuration: %m");
	r = fdio_read_all(config_fd, FILE_MAX, &text);
	if (r < 0)
		return err_set(err, r, "gateway: read its configuration: %m");
	r = read_hidden(secrets_fd, &config->secrets, err);
	if (r == 0)
		r = read_hidden(proxy_fd, &config->proxy, err);
	if (r < 0)
		return r;
	root = json_loadb(text.p ? text.p : "", text.len, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		return err_set(err, -EINVAL, "gateway: its configuration: %s", why.text);
	r = read_config(config, root, err);
	json_decref(root);
	if (r == 0)
		find_resolvers(config);
	return r;
}

void config_done(struct config *config)
{
	free(config->sandbox);
	spec_words_done(&config->resolvers);
	spec_network_done(&config->network);
	str_wipe(&config->secrets);
	str_wipe(&config->proxy);
}
