/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote/transfer.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/mem.h"

#define KEY_MAX    200
#define FDS_MAX    8
#define KEY_ADVICE "CLOCHE_KEY or --key-file"

/* ---- the key ---- */

static int read_key_file(const char *path, char **ret_key, struct err *err)
{
	scoped_secret struct str text = {0};
	int r = fdio_read_file(AT_FDCWD, path, KEY_MAX + 2, &text);

	if (r < 0 && r != -EFBIG)
		return err_set(err, r, "read the key in '%s': %m", path);
	while (r == 0 && text.len && strchr("\r\n", text.p[text.len - 1]))
		text.p[--text.len] = '\0';
	*ret_key = mem_copy(text.p ? text.p : "", r < 0 ? 0 : text.len);
	return 0;
}

static int check_key(const char *key, const char *from, struct err *err)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < len; i++)
		if (key[i] <= ' ' || key[i] > '~')
			len = 0;
	if (len == 0 || len > KEY_MAX)
		return err_set(err, -EINVAL, "%s holds no key: want one line, clo_...", from);
	return 0;
}

/* It stood in the list of processes until here. */
static char *take_argument(const char *key)
{
	char *copy = mem_dup(key);

	memset((char *)key, '*', strlen(key)); /* of argv, which is ours */
	return copy;
}

static int find_key(const struct cli *cli, char **ret_key, struct err *err)
{
	const char *env = getenv("CLOCHE_KEY"), *from = "CLOCHE_KEY";
	int r = 0;

	if (cli->key && cli->key_file)
		return err_set(err, -EINVAL, "options '--key' and '--key-file' exclude each other");
	if (cli->key) {
		from = "--key";
		*ret_key = take_argument(cli->key);
	} else if (cli->key_file) {
		from = cli->key_file;
		r = read_key_file(cli->key_file, ret_key, err);
	} else if (env && *env) {
		*ret_key = mem_dup(env);
	}
	return r < 0 || !*ret_key ? r : check_key(*ret_key, from, err);
}

/* ---- the way ---- */

static int find_ca(const struct cli *cli, char **ret_ca, struct err *err)
{
	const char *env = getenv("CLOCHE_SERVER_CA"), *path = cli->server_ca;

	if (!path && env && *env)
		path = env;
	if (path && access(path, R_OK) < 0)
		return err_set(err, -errno, "certificates in '%s': %m", path);
	*ret_ca = mem_dup(path);
	return 0;
}

int link_open(const struct cli *cli, struct link **ret_link, struct err *err)
{
	scoped(link) struct link *link = new0(struct link);
	scoped_mem char *own = mem_printf("unix://%s/cloche.sock", cli->run_dir);
	int r = address_read(cli->server ? cli->server : own, &link->address, err);

	if (r == 0)
		r = find_key(cli, &link->key, err);
	if (r == 0)
		r = find_ca(cli, &link->ca, err);
	if (r < 0)
		return r;
	if (link->address.is_open && link->key && !cli->quiet)
		log_warn("the key goes to %s unencrypted: https:// keeps it from whoever is "
			 "between",
			link->address.shown);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	link->multi = curl_multi_init();
	if (!link->multi)
		return err_set(err, -ENOMEM, "start libcurl: %m");
	*ret_link = take(&link);
	return 0;
}

void link_free(struct link *link)
{
	if (!link)
		return;
	if (link->multi)
		curl_multi_cleanup(link->multi);
	if (link->key)
		explicit_bzero(link->key, strlen(link->key));
	free(link->key);
	free(link->ca);
	address_done(&link->address);
	free(link);
}

/* Whether any has ended. */
static bool reap(struct link *link)
{
	struct CURLMsg *message;
	bool has_ended = false;
	int n;

	while ((message = curl_multi_info_read(link->multi, &n))) {
		char *transfer = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
		transfer_end((struct transfer *)transfer, message->data.result);
		has_ended = true;
	}
	return has_ended;
}

void link_work(struct link *link, struct pollfd *fds, size_t n_fds, int timeout_ms)
{
	struct curl_waitfd waits[FDS_MAX];
	int n;

	curl_multi_perform(link->multi, &n);
	if (reap(link))
		timeout_ms = 0;
	for (size_t i = 0; i < n_fds && i < FDS_MAX; i++)
		waits[i] = (struct curl_waitfd){.fd = fds[i].fd, .events = CURL_WAIT_POLLIN};
	curl_multi_poll(link->multi, waits, (unsigned)n_fds, timeout_ms, NULL);
	/* Again, since libcurl does not tell that a pipe's other end was closed. */
	if (n_fds > 0 && poll(fds, n_fds, 0) < 0)
		for (size_t i = 0; i < n_fds; i++)
			fds[i].revents = 0;
	curl_multi_perform(link->multi, &n);
	(void)reap(link);
}
