/* SPDX-License-Identifier: Apache-2.0 */
/* cloche-serve: not for people; the launcher starts it, without rights. Descriptors: 3 its settings (a JSON object), 4 the
 * launcher, 5 and on the sockets it listens on. Status 3: starting it again would not help; 4: not now. With "reindex" among the
 * settings it makes the index again and ends. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "server/reindex.h"
#include "server/server.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/scoped.h"

#define SETTINGS_FD  3
#define OFFICE_FD    4
#define SOCKETS_FROM 5
#define SETTINGS_MAX (4u << 20)
#define GIVES_UP     3
#define NOT_NOW      4

static json_t *read_settings(void)
{
	scoped_str struct str text = {0};
	json_t *settings = NULL;

	if (fdio_read_all(SETTINGS_FD, SETTINGS_MAX, &text) == 0)
		settings = json_loadb(text.p, text.len, 0, NULL);
	close(SETTINGS_FD);
	return settings;
}

/* The database is away, which passes. */
static bool is_passing(int r)
{
	return r == -ECONNREFUSED || r == -ECONNRESET || r == -EAGAIN || r == -ETIMEDOUT;
}

int main(void)
{
	struct err err = {0};
	json_t *settings;
	int r;

	if (fcntl(SETTINGS_FD, F_GETFD) < 0 || fcntl(OFFICE_FD, F_GETFD) < 0) {
		fprintf(stderr, "cloche-serve is started by `cloche serve`\n");
		return 2;
	}
	prctl(PR_SET_DUMPABLE, 0); /* keys pass through its memory */
	settings = read_settings();
	if (json_object_get(settings, "reindex"))
		r = reindex_run(settings, OFFICE_FD, &err);
	else
		r = server_run(settings, OFFICE_FD, SOCKETS_FROM, &err);
	json_decref(settings);
	if (r == 0)
		return 0;
	log_warn("%s", err.msg);
	return is_passing(r) ? NOT_NOW : GIVES_UP;
}
