/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/network.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "netcatch/netcatch.h"
#include "supervisor/gateway_process.h"
#include "supervisor/metering.h"
#include "supervisor/network_asks.h"
#include "supervisor/network_events.h"
#include "supervisor/network_rules.h"
#include "supervisor/owner_finder.h"
#include "supervisor/plane_way.h"
#include "supervisor/visit.h"
#include "util/clock.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/path.h"

#define SETTLE_MS      100  /* an exec's result waits this long for the rest of its events */
#define LAST_SETTLE_MS 1000 /* and the sandbox's end */
#define CHANGE_MS      2000 /* who changed rules or proxy, for them to hold */
#define RETRY_MIN_MS \
	100 /* from a gateway's death to the next one, when it lived for less than STEADY_MS; */
#define RETRY_MAX_MS 10000 /* twice that after each further one */
#define STEADY_MS    10000

/* What something from inside shows at first; streams only where a gateway died with one that it had let through and
 * not taken yet. */
static const enum netcatch_part watched[] = {NETCATCH_PART_TCP, NETCATCH_PART_RING,
	NETCATCH_PART_COPIES, NETCATCH_PART_UDP4, NETCATCH_PART_UDP6, NETCATCH_PART_DNS4,
	NETCATCH_PART_DNS6};
#define N_WATCHED (sizeof(watched) / sizeof(watched[0]))

struct network {
	struct netcatch *netcatch;
	bool is_open;
	struct exec_names *names;
	struct network_asks *asks;
	struct loop_io *ios[N_WATCHED]; /* NULL: a gateway looks at them, or nobody for now */
	struct loop_io *published[GATEWAY_PUBLISHED_MAX], *visits; /* likewise */
	struct loop_timer *retry;
	int retry_ms;
	struct gateway_process *gateway; /* NULL: none runs */
	struct owner_finder *finder;     /* of that gateway */
	struct plane_way *plane;         /* likewise; NULL: the spec has none */
	int64_t started_ns;
	uint64_t lost;       /* told of what the kernel half could not tell */
	bool has_lost_blobs; /* told that a body did not get into the record */
	struct event_line *line;
};

static void start_gateway(struct supervisor *sup);

/* ---- who looks at the sockets ---- */

static void on_first_use(void *ctx, unsigned what)
{
	start_gateway(ctx);
}

static void watch(struct supervisor *sup)
{
	struct network *network = sup->network;

	for (size_t i = 0; i < N_WATCHED; i++) {
		int fd = netcatch_fd(network->netcatch, watched[i]);

		if (fd >= 0)
			network->ios[i] = loop_io_new(sup->loop, fd, LOOP_READ, on_first_use, sup);
	}
	for (size_t i = 0; i < sup->n_published; i++)
		network->published[i] =
			loop_io_new(sup->loop, sup->published[i], LOOP_READ, on_first_use, sup);
	network->visits =
		loop_io_new(sup->loop, visit_gateway_fd(sup), LOOP_READ, on_first_use, sup);
}

static void look_away(struct network *network)
{
	for (size_t i = 0; i < N_WATCHED; i++)
		loop_io_free(take(&network->ios[i]));
	for (size_t i = 0; i < GATEWAY_PUBLISHED_MAX; i++)
		loop_io_free(take(&network->published[i]));
	loop_io_free(take(&network->visits));
}

static bool is_used(const struct network *network)
{
	struct pollfd fds[N_WATCHED];

	for (size_t i = 0; i < N_WATCHED; i++)
		fds[i] = (struct pollfd){
			.fd = netcatch_fd(network->netcatch, watched[i]), .events = POLLIN};
	return poll(fds, N_WATCHED, 0) > 0;
}

/* ---- the gateway ---- */

static int config_file(const struct supervisor *sup, struct err *err)
{
	scoped_fd int fd = memfd_create("gateway", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);
	int r;

	jsonw_object(&j);
	jsonw_ktext(&j, "sandbox", sup->id);
	jsonw_kint(&j, "start_ns", sandbox_start_ns(sup->sandbox));
	jsonw_kint(&j, "uid", sandbox_gateway_id(sup->sandbox));
	jsonw_key(&j, "network");
	spec_network_write(&j, &sup->spec->network, false);
	jsonw_object_end(&j);
	r = fd < 0 ? -errno : fdio_write_all(fd, text.p, text.len);
	if (r == 0 && fcntl(fd, F_ADD_SEALS,
			      F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "write the gateway's configuration: %m") : take_fd(&fd);
}

static void on_frame(void *ctx, const struct gateway_frame *frame)
{
	struct supervisor *sup = ctx;
	struct network *network = sup->network;

	if (frame->type == GATEWAY_EVENT)
		network_events_take(sup, network->names, frame, &network->line);
	else if (frame->type == GATEWAY_BYTES_OUT || frame->type == GATEWAY_BYTES_IN)
		metering_count_network(sup, frame->type == GATEWAY_BYTES_OUT, frame->id);
	else if (frame->type == GATEWAY_ASK)
		network_asks_take(sup, network->asks, frame);
	else if (sup->spec->trace & SPEC_TRACE_NETWORK) /* else no event names it */
		network_events_take_blob(sup, frame, &network->has_lost_blobs);
}

static void retry_later(struct supervisor *sup)
{
	struct network *network = sup->network;
	int64_t lived_ms = (clock_mono_ns() - network->started_ns) / CLOCK_NS_PER_MS;

	if (lived_ms >= STEADY_MS || network->retry_ms == 0)
		network->retry_ms = RETRY_MIN_MS;
	else
		network->retry_ms =
			2 * network->retry_ms < RETRY_MAX_MS ? 2 * network->retry_ms : RETRY_MAX_MS;
	loop_timer_set(network->retry, network->retry_ms);
}

static void free_gateway(struct network *network)
{
	gateway_process_free(take(&network->gateway));
	owner_finder_free(take(&network->finder));
	plane_way_free(take(&network->plane));
}

static void on_end(void *ctx, const char *reason)
{
	struct supervisor *sup = ctx;

	network_events_say_gateway(sup, "died", reason);
	recorder_flush(sup->recorder, false);
	metering_end_gateway(sup);
	network_asks_forget(sup->network->asks);
	netcatch_reset(sup->network->netcatch);
	free_gateway(sup->network);
	retry_later(sup);
}

static void on_retry(void *ctx)
{
	watch(ctx);
}

static int open_gateway(struct supervisor *sup, struct err *err)
{
	static const struct {
		enum gateway_fd at;
		enum netcatch_part part;
	} handed[] = {
		{GATEWAY_FD_TCP, NETCATCH_PART_TCP},
		{GATEWAY_FD_UDP4, NETCATCH_PART_UDP4},
		{GATEWAY_FD_UDP6, NETCATCH_PART_UDP6},
		{GATEWAY_FD_DNS4, NETCATCH_PART_DNS4},
		{GATEWAY_FD_DNS6, NETCATCH_PART_DNS6},
		{GATEWAY_FD_RAW4, NETCATCH_PART_RAW4},
		{GATEWAY_FD_RAW6, NETCATCH_PART_RAW6},
		{GATEWAY_FD_FLOWS, NETCATCH_PART_FLOWS},
		{GATEWAY_FD_OWNERS, NETCATCH_PART_OWNERS},
		{GATEWAY_FD_RING, NETCATCH_PART_RING},
		{GATEWAY_FD_REFUSED, NETCATCH_PART_REFUSED},
		{GATEWAY_FD_COPIES, NETCATCH_PART_COPIES},
	};
	struct gateway_process_config config = {
		.loop = sup->loop, .on_frame = on_frame, .on_end = on_end, .ctx = sup};
	struct network *network = sup->network;
	scoped_fd int config_fd = config_file(sup, err), finder_fd = -1, plane_fd = -1;
	int r;

	if (config_fd < 0)
		return config_fd;
	r = owner_finder_start(network->netcatch, &network->finder, &finder_fd, err);
	if (r == 0 && sup->spec->network.control_plane)
		r = plane_way_open(sup, &network->plane, &plane_fd, err);
	if (r < 0)
		return r;
	config.fds[GATEWAY_FD_FINDER] = finder_fd;
	config.fds[GATEWAY_FD_PLANE] = plane_fd;
	config.fds[GATEWAY_FD_CONFIG] = config_fd;
	config.fds[GATEWAY_FD_SECRETS] = sup->secrets_fd;
	config.fds[GATEWAY_FD_PROXY] = sup->proxy_fd;
	config.fds[GATEWAY_FD_NETNS] = sandbox_netns_fd(sup->sandbox);
	for (size_t i = 0; i < sizeof(handed) / sizeof(handed[0]); i++)
		config.fds[handed[i].at] = netcatch_fd(network->netcatch, handed[i].part);
	config.fds[GATEWAY_FD_VISITS] = visit_gateway_fd(sup);
	for (size_t i = 0; i < GATEWAY_PUBLISHED_MAX; i++)
		config.fds[GATEWAY_FD_PUBLISHED + i] =
			i < sup->n_published ? sup->published[i] : -1;
	return gateway_process_start(&config, &network->gateway, err);
}

static void start_gateway(struct supervisor *sup)
{
	struct network *network = sup->network;
	struct err err;

	look_away(network);
	network->started_ns = clock_mono_ns();
	if (open_gateway(sup, &err) < 0) {
		free_gateway(network);
		network_events_say_gateway(sup, "died", err.msg);
		retry_later(sup);
		return;
	}
	network_events_say_gateway(sup, "started", NULL);
}

/* ---- around the sandbox ---- */

static void say_blind(struct supervisor *sup, const char *what, const char *why)
{
	scoped_mem char *reason = mem_printf("%s: %s", what, why);
	struct event ev = {.kind = EVENT_TRACE_BLIND};

	event_set_text(&ev, reason, reason);
	recorder_emit_now(sup->recorder, &ev);
}

/* What the record of such a host cannot say, though nothing goes around the gateway. */
static void say_what_lacks(struct supervisor *sup)
{
	const struct netcatch *netcatch = sup->network->netcatch;

	if (netcatch_by_rules(netcatch))
		say_blind(sup,
			"the network is caught by nftables: whose a connection is, is looked up "
			"afterwards and may be missing, and what listens is not told",
			netcatch_by_rules(netcatch));
	else if (netcatch_notice(netcatch))
		say_blind(sup,
			"whose a connection is, is looked up afterwards and may be missing, and "
			"what listens is not told",
			netcatch_notice(netcatch));
}

void network_prepare(struct supervisor *sup)
{
	if (sup->spec->network.net == SPEC_NET_NONE)
		return;
	(void)path_make_all(
		sup->run_dir, 0755); /* what cannot be kept there is asked for each time */
	sup->network = new0(struct network);
	sup->network->names = exec_names_new();
	sup->network->asks = network_asks_new();
}

void network_on_place(void *ctx, int netns_fd, int cgroup_fd)
{
	struct supervisor *sup = ctx;
	scoped_mem char *cache = mem_printf("%s/kernel-fields", sup->run_dir);
	struct netcatch_config config = {
		.netns_fd = netns_fd, .cgroup_fd = cgroup_fd, .cache = cache};

	sup->network->netcatch = netcatch_start(&config);
}

void network_open(struct supervisor *sup)
{
	struct network *network = sup->network;
	struct err err;

	if (!network || network->is_open)
		return;
	if (netcatch_wait(network->netcatch, &err) < 0 || visit_open(sup, &err) < 0) {
		say_blind(sup, "the network is off", err.msg);
		network_free(sup);
		return;
	}
	network->is_open = true;
	say_what_lacks(sup);
	if (sup->spec->network.allow.n + sup->spec->network.deny.n > 0)
		network_rules_say(sup, sup->spec->account);
	network->retry = loop_timer_new(sup->loop, on_retry, sup);
	watch(sup);
}

void network_add_exec(struct supervisor *sup, uint64_t cgroup_id, const char *exec_id)
{
	if (sup->network)
		exec_names_add(sup->network->names, cgroup_id, exec_id);
}

void network_end_exec(struct supervisor *sup, uint64_t cgroup_id)
{
	if (sup->network)
		exec_names_end(sup->network->names, cgroup_id);
}

static void say_lost(struct supervisor *sup)
{
	struct network *network = sup->network;
	uint64_t lost = netcatch_lost(network->netcatch);
	struct event ev = {.kind = EVENT_TRACE_DROPPED};

	if (lost <= network->lost || !(sup->spec->trace & SPEC_TRACE_NETWORK))
		return;
	event_set(&ev, count, (int64_t)(lost - network->lost));
	event_set_text(&ev, source_lost, "network");
	network->lost = lost;
	recorder_emit_now(sup->recorder, &ev);
	if (sup->spec->on_loss == SPEC_ON_LOSS_STOP)
		supervisor_end(sup, "events were lost (--on-loss stop)");
}

static bool settle(struct supervisor *sup, int deadline_ms)
{
	struct network *network = sup->network;

	if (!network || !network->is_open)
		return true;
	say_lost(sup);
	if (!network->gateway && !is_used(network))
		return true;
	if (!network->gateway && network->ios[0])
		start_gateway(sup);
	return network->gateway && gateway_process_flush(network->gateway, deadline_ms) == 0;
}

bool network_settle(struct supervisor *sup)
{
	return settle(sup, SETTLE_MS);
}

/* Frames are handled in their order: who asked for it is answered when it holds. */
static void tell_change(struct supervisor *sup, enum gateway_frame_type type, struct slice text)
{
	struct gateway_frame frame = {.type = type, .rest = text};

	gateway_process_send(sup->network->gateway, &frame);
	(void)gateway_process_flush(
		sup->network->gateway, CHANGE_MS); /* one that hangs hears of it later */
}

void network_rules_changed(struct supervisor *sup)
{
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);

	if (!sup->network || !sup->network->gateway)
		return; /* it is given the spec as it is then */
	spec_network_write(&j, &sup->spec->network, false);
	tell_change(sup, GATEWAY_RULES, str_slice(&text));
}

void network_proxy_changed(struct supervisor *sup, struct slice text)
{
	if (sup->network && sup->network->gateway)
		tell_change(sup, GATEWAY_PROXY, text);
}

void network_ask_count(struct supervisor *sup)
{
	if (sup->network && sup->network->gateway)
		gateway_process_send(
			sup->network->gateway, &(struct gateway_frame){.type = GATEWAY_COUNT});
}

void network_answer(struct supervisor *sup, uint64_t ask_id, bool is_allowed)
{
	struct gateway_frame frame = {.type = GATEWAY_ANSWER, .id = ask_id, .flag = is_allowed};

	if (sup->network && sup->network->gateway)
		gateway_process_send(sup->network->gateway, &frame);
}

int network_on_answer(struct supervisor *sup, const json_t *body, bool may_private, struct err *err)
{
	if (!sup->network)
		return err_set(err, -ENOENT, "this sandbox has no network");
	return network_asks_answer(sup, sup->network->asks, body, may_private, err);
}

void network_write_asks(struct supervisor *sup, struct str *out)
{
	network_asks_write(sup->network ? sup->network->asks : NULL, out);
}

void network_stop(struct supervisor *sup)
{
	struct network *network = sup->network;

	if (!network || !network->is_open)
		return;
	(void)settle(sup, LAST_SETTLE_MS);
	look_away(network);
	if (network->gateway && gateway_process_finish(network->gateway, LAST_SETTLE_MS) < 0)
		say_blind(sup, "the end of connections is not known",
			"the gateway took too long to tell of it");
	free_gateway(network);
}

void network_free(struct supervisor *sup)
{
	struct network *network = take(&sup->network);

	if (!network)
		return;
	look_away(network);
	free_gateway(network);
	loop_timer_free(network->retry);
	visit_close(sup);
	netcatch_free(network->netcatch);
	exec_names_free(network->names);
	network_asks_free(network->asks);
	event_line_free(network->line);
	free(network);
}
