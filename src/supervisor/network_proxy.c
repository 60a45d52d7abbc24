/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/network_proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "supervisor/network.h"
#include "util/fdio.h"
#include "util/mem.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int memory_file(struct slice text)
{
	scoped_fd int fd = memfd_create("proxy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : fdio_write_all(fd, text.p, text.len);

	if (r == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(&fd);
}

static void say(struct supervisor *sup, const char *actor)
{
	struct event ev = {.kind = EVENT_NET_PROXY};

	event_set_text(&ev, url, sup->spec->network.upstream_proxy);
	event_set_text(&ev, actor, actor);
	recorder_emit_now(sup->recorder, &ev);
	recorder_flush(sup->recorder, sup->spec->durable);
}

/* The event comes before the first connection that takes it. */
static int take_over(struct supervisor *sup, struct slice text, const char *actor, struct err *err)
{
	struct spec_network *net = &sup->spec->network;
	int fd = memory_file(text), r;

	if (fd < 0)
		return err_set(err, fd, "keep the upstream proxy: %m");
	r = spec_hidden_read_proxy(net, text, err);
	spec_hidden_forget(net);
	if (r < 0) {
		close(fd);
		return r;
	}
	scoped_close(&sup->proxy_fd);
	sup->proxy_fd = fd;
	say(sup, actor);
	network_proxy_changed(sup, text);
	return 0;
}

int network_proxy_request(struct supervisor *sup, const json_t *body, struct err *err)
{
	const char *actor = json_string_value(json_object_get(body, "actor"));
	const json_t *proxy = json_object_get(body, "proxy");
	char *text;
	int r;

	if (!sup->network)
		return err_set(err, -ENETDOWN,
			"sandbox %s has no network: a proxy is for one made with '--net open' or "
			"'--net allow'",
			sup->id);
	text = proxy ? json_dumps(proxy, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	if (!text)
		return err_set(err, -EINVAL, "'proxy' must be an object or null");
	r = take_over(sup, slice_of(text), actor, err);
	explicit_bzero(text, strlen(text));
	free(text);
	return r;
}
