/* SPDX-License-Identifier: Apache-2.0 */
/* A network namespace and a group of the test's own, caught; what a program in them then meets, and what is told of it.
 * Skips where it is not root or the host has no cgroup2 hierarchy. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "netcatch/netcatch.h"
#include "netcatch/netcatch_wire.h"
#include "sandbox/cgroup.h"
#include "util/fdio.h"
#include "util/kmap.h"
#include "util/mem.h"
#include "util/ring.h"

#define WAIT_MS 5000
#define COMM    "nc-inside"

struct place {
	char *group, *cache;
	uint64_t group_id;
	int netns_fd, group_fd;
	struct netcatch *netcatch;
	struct ring *ring;
};

/* ---- inside ---- */

struct target {
	const char *address;
	uint16_t port;
	int type;
};

static socklen_t fill(struct sockaddr_storage *to, const char *address, uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;

	memset(to, 0, sizeof(*to));
	if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return sizeof(*v4);
	}
	inet_pton(AF_INET6, address, &v6->sin6_addr);
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	return sizeof(*v6);
}

/* The errno of connect() and, for datagrams, of one send. */
static int reach(const struct target *target)
{
	struct sockaddr_storage to;
	socklen_t len = fill(&to, target->address, target->port);
	int fd = socket(to.ss_family, target->type, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, len) < 0)
		return errno;
	return target->type == SOCK_DGRAM && send(fd, "hello", 5, 0) < 0 ? errno : 0;
}

static int send_to(const struct target *target)
{
	struct sockaddr_storage to;
	socklen_t len = fill(&to, target->address, target->port);
	int fd = socket(to.ss_family, SOCK_DGRAM, 0);

	return sendto(fd, "hello", 5, 0, (const struct sockaddr *)&to, len) < 0 ? errno : 0;
}

static int talk_to_self(const struct target *target)
{
	struct sockaddr_storage at;
	socklen_t len = fill(&at, target->address, 0);
	int server = socket(at.ss_family, SOCK_STREAM, 0),
	    client = socket(at.ss_family, SOCK_STREAM, 0);
	char c = 0;

	if (bind(server, (const struct sockaddr *)&at, len) < 0 || listen(server, 1) < 0 ||
		getsockname(server, (struct sockaddr *)&at, &len) < 0 ||
		connect(client, (const struct sockaddr *)&at, len) < 0)
		return errno;
	if (write(client, "x", 1) != 1 || read(accept(server, NULL, NULL), &c, 1) != 1 || c != 'x')
		return EPROTO;
	return 0;
}

/* Forks a program into the place, whose exit status is what `what` returns. */
static pid_t start(
	const struct place *place, int (*what)(const struct target *), const struct target *target)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, COMM);
	if (fdio_put(place->group_fd, "cgroup.procs", "0") < 0 ||
		setns(place->netns_fd, CLONE_NEWNET) < 0)
		_exit(255);
	_exit(what(target));
}

static int end_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int run(
	const struct place *place, int (*what)(const struct target *), const struct target *target)
{
	return end_of(start(place, what, target));
}

/* ---- outside ---- */

static void next_record(struct place *place, struct netcatch_record *ret_record)
{
	struct pollfd p = {.fd = ring_fd(place->ring), .events = POLLIN};
	struct slice span, record;

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(ring_span(place->ring, sizeof(*ret_record), &span), 1);
	assert_true(ring_record(&span, &record));
	assert_int_equal(record.len, sizeof(*ret_record));
	memcpy(ret_record, record.p, sizeof(*ret_record));
	ring_release(place->ring);
}

static void assert_owner(const struct place *place, const struct netcatch_owner *owner, pid_t pid)
{
	assert_int_equal(owner->cgroup, place->group_id);
	assert_int_equal(owner->host_pid, pid);
	assert_string_equal(owner->comm, COMM);
	assert_true(owner->cookie != 0);
}

static void assert_address(const uint8_t mapped[16], const char *text)
{
	uint8_t want[16] = {[10] = 0xff, [11] = 0xff};

	if (inet_pton(AF_INET, text, want + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, want), 1);
	assert_memory_equal(mapped, want, sizeof(want));
}

static int part(const struct place *place, enum netcatch_part which)
{
	return netcatch_fd(place->netcatch, which);
}

static const struct target streams[] = {
	{"192.0.2.1", 1, SOCK_STREAM},
	{"192.0.2.1", 443, SOCK_STREAM},
	{"8.8.8.8", 65535, SOCK_STREAM},
	{"10.1.2.3", 53, SOCK_STREAM},
	{"2001:db8::7", 80, SOCK_STREAM},
	{"::ffff:192.0.2.9", 81, SOCK_STREAM},
};

#define N_STREAMS (sizeof(streams) / sizeof(streams[0]))

static size_t stream_of(const struct netcatch_key *key)
{
	for (size_t i = 0; i < N_STREAMS; i++) {
		uint8_t want[16] = {[10] = 0xff, [11] = 0xff};

		if (inet_pton(AF_INET, streams[i].address, want + 12) != 1)
			inet_pton(AF_INET6, streams[i].address, want);
		if (memcmp(key->dst, want, sizeof(want)) == 0 && key->dport == streams[i].port)
			return i;
	}
	fail_msg("a record of what nobody asked for, port %u", key->dport);
	return 0;
}

/* All at once: who is held hears of the answer when its kernel asks again, a second later. */
static void test_holds_streams_and_tells_whose(void **state)
{
	struct place *place = *state;
	const uint32_t pass = NETCATCH_PASS;
	pid_t pids[N_STREAMS];

	for (size_t i = 0; i < N_STREAMS; i++)
		pids[i] = start(place, reach, &streams[i]);
	for (size_t i = 0; i < N_STREAMS; i++) {
		struct netcatch_record record = {0};

		next_record(place, &record);
		assert_int_equal(record.kind, NETCATCH_SYN);
		assert_int_equal(record.key.protocol, IPPROTO_TCP);
		assert_address(record.key.src, record.packet[0] >> 4 == 4 ? "10.0.0.2" : "fd00::2");
		assert_owner(place, &record.owner, pids[stream_of(&record.key)]);
		assert_int_equal(
			kmap_find(part(place, NETCATCH_PART_OWNERS), &record.key, &record.owner),
			-ENOENT);
		assert_int_equal(kmap_set(part(place, NETCATCH_PART_FLOWS), &record.key, &pass), 0);
	}
	for (size_t i = 0; i < N_STREAMS; i++)
		assert_int_equal(end_of(pids[i]), 0);
	for (size_t i = 0; i < N_STREAMS; i++)
		assert_int_equal(close(accept(part(place, NETCATCH_PART_TCP), NULL, NULL)), 0);
}

/* Says yes to the next SYN and gives what it leads to. */
static int accept_next(struct place *place)
{
	struct pollfd p = {.fd = part(place, NETCATCH_PART_TCP), .events = POLLIN};
	const uint32_t pass = NETCATCH_PASS;
	struct netcatch_record record = {0};

	next_record(place, &record);
	assert_int_equal(kmap_set(part(place, NETCATCH_PART_FLOWS), &record.key, &pass), 0);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	return accept(p.fd, NULL, NULL);
}

static void test_passed_stream_has_the_place_it_was_for(void **state)
{
	struct place *place = *state;
	struct sockaddr_in6 at = {0};
	socklen_t len = sizeof(at);
	struct linger linger;
	pid_t pid = start(place, reach, &(struct target){"192.0.2.77", 4242, SOCK_STREAM});
	int fd = accept_next(place);

	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	assert_address(at.sin6_addr.s6_addr, "192.0.2.77");
	assert_int_equal(ntohs(at.sin6_port), 4242);
	len = sizeof(linger);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len), 0);
	assert_int_equal(linger.l_onoff, 1); /* who dies resets */
	assert_int_equal(end_of(pid), 0);
	close(fd);
}

static void assert_datagram(struct place *place, enum netcatch_part socket, const struct target *to,
	int (*how)(const struct target *))
{
	struct pollfd p = {.fd = part(place, socket), .events = POLLIN};
	struct netcatch_key key = {.dport = to->port, .protocol = IPPROTO_UDP};
	struct sockaddr_in6 from = {0}; /* one of IPv4 fits in, too */
	struct netcatch_owner owner;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&from;
	socklen_t len = sizeof(from);
	pid_t pid = start(place, how, to);
	char text[16];

	assert_int_equal(end_of(pid), 0);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(recvfrom(p.fd, text, sizeof(text), 0, (struct sockaddr *)&from, &len), 5);
	key.dst[10] = key.dst[11] = key.src[10] = key.src[11] = 0xff;
	if (from.sin6_family == AF_INET) {
		inet_pton(AF_INET, to->address, key.dst + 12);
		memcpy(key.src + 12, &v4->sin_addr, 4);
		key.sport = ntohs(v4->sin_port);
	} else {
		inet_pton(AF_INET6, to->address, key.dst);
		memcpy(key.src, &from.sin6_addr, 16);
		key.sport = ntohs(from.sin6_port);
	}
	assert_int_equal(kmap_find(part(place, NETCATCH_PART_OWNERS), &key, &owner), 0);
	assert_owner(place, &owner, pid);
	assert_int_equal(kmap_remove(part(place, NETCATCH_PART_OWNERS), &key), 0);
}

static void test_datagrams_arrive_and_tell_whose(void **state)
{
	static const struct {
		enum netcatch_part socket;
		struct target to;
	} cases[] = {
		{NETCATCH_PART_UDP4, {"192.0.2.5", 123, SOCK_DGRAM}},
		{NETCATCH_PART_UDP6, {"2001:db8::5", 123, SOCK_DGRAM}},
		{NETCATCH_PART_DNS4, {"10.0.0.53", 53, SOCK_DGRAM}},
		{NETCATCH_PART_DNS4, {"8.8.8.8", 53, SOCK_DGRAM}},
		{NETCATCH_PART_DNS6, {"2001:db8::53", 53, SOCK_DGRAM}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_datagram(*state, cases[i].socket, &cases[i].to, reach);
		assert_datagram(*state, cases[i].socket, &cases[i].to, send_to);
	}
}

static void assert_told_refused(struct place *place, const struct target *to)
{
	struct netcatch_record record = {0};

	next_record(place, &record);
	assert_int_equal(record.kind, NETCATCH_REFUSED);
	assert_address(record.key.dst, to->address);
	assert_int_equal(record.key.dport, to->port);
	assert_int_equal(record.key.protocol, to->type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP);
	assert_int_equal(record.owner.cgroup, place->group_id);
	assert_string_equal(record.owner.comm, COMM);
}

static void refuse(struct place *place, const char *address, uint16_t port, uint16_t protocol)
{
	struct netcatch_target target = {.dport = port, .protocol = protocol};
	const uint32_t yes = 1;

	target.dst[10] = target.dst[11] = 0xff;
	if (inet_pton(AF_INET, address, target.dst + 12) != 1)
		inet_pton(AF_INET6, address, target.dst);
	assert_int_equal(kmap_set(part(place, NETCATCH_PART_REFUSED), &target, &yes), 0);
}

static void test_refused_targets_fail_at_once(void **state)
{
	static const struct {
		struct target to;
		int how_connect, how_send;
	} cases[] = {
		{{"192.0.2.50", 99, SOCK_STREAM}, EACCES, 0},
		{{"192.0.2.50", 99, SOCK_DGRAM}, EACCES, EPERM},
		{{"2001:db8::50", 7, SOCK_STREAM}, EACCES, 0},
		{{"192.0.2.51", 443, SOCK_DGRAM}, EACCES, EPERM},
		{{"224.0.0.251", 5353, SOCK_DGRAM}, EACCES,
			EPERM}, /* to many: nobody had to say so */
		{{"ff02::fb", 5353, SOCK_DGRAM}, EACCES, EPERM},
	};
	struct place *place = *state;

	refuse(place, "192.0.2.50", 0, 0);
	refuse(place, "2001:db8::50", 7, IPPROTO_TCP);
	refuse(place, "192.0.2.51", 443, IPPROTO_UDP);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(run(place, reach, &cases[i].to), cases[i].how_connect);
		assert_told_refused(place, &cases[i].to);
		if (!cases[i].how_send)
			continue;
		assert_int_equal(run(place, send_to, &cases[i].to), cases[i].how_send);
		assert_told_refused(place, &cases[i].to);
	}
}

static void test_reset_forgets_what_was_entered(void **state)
{
	struct place *place = *state;
	struct netcatch_key key = {.protocol = IPPROTO_TCP};
	struct netcatch_target target;
	const uint32_t pass = NETCATCH_PASS;

	refuse(place, "192.0.2.60", 0, 0);
	for (uint16_t port = 1; port <= 100; port++) {
		key.dport = port;
		assert_int_equal(kmap_set(part(place, NETCATCH_PART_FLOWS), &key, &pass), 0);
	}
	netcatch_reset(place->netcatch);
	assert_int_equal(kmap_first(part(place, NETCATCH_PART_FLOWS), &key), -ENOENT);
	assert_int_equal(kmap_first(part(place, NETCATCH_PART_REFUSED), &target), -ENOENT);
}

static void test_own_addresses_are_left_alone(void **state)
{
	static const char *const own[] = {"127.0.0.1", "127.8.9.10", "::1", "10.0.0.2", "fd00::2"};
	struct place *place = *state;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		struct netcatch_record record = {0};

		assert_int_equal(
			run(place, talk_to_self, &(struct target){own[i], 0, SOCK_STREAM}), 0);
		next_record(place, &record);
		assert_int_equal(record.kind, NETCATCH_LISTEN);
		assert_int_equal(
			run(place, reach, &(struct target){own[i], 9, SOCK_STREAM}), ECONNREFUSED);
	}
	assert_int_equal(ring_waiting(place->ring), 0);
}

static int listen_at(const struct target *target)
{
	struct sockaddr_storage at;
	socklen_t len = fill(&at, target->address, target->port);
	int fd = socket(at.ss_family, SOCK_STREAM, 0);

	return bind(fd, (const struct sockaddr *)&at, len) < 0 || listen(fd, 1) < 0 ? errno : 0;
}

static void test_tells_what_is_listened_on(void **state)
{
	static const struct target at[] = {{"0.0.0.0", 8080, SOCK_STREAM},
		{"127.0.0.1", 8081, SOCK_STREAM}, {"::1", 8082, SOCK_STREAM}};
	struct place *place = *state;

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		pid_t pid = start(place, listen_at, &at[i]);
		struct netcatch_record record = {0};

		assert_int_equal(end_of(pid), 0);
		next_record(place, &record);
		assert_int_equal(record.kind, NETCATCH_LISTEN);
		assert_address(record.key.src, at[i].address);
		assert_int_equal(record.key.sport, at[i].port);
		assert_owner(place, &record.owner, pid);
	}
}

/* What the gateway's sockets are bound to is no way to them. */
static void test_gateway_cannot_be_dialled(void **state)
{
	struct place *place = *state;
	struct sockaddr_in6 at;
	socklen_t len = sizeof(at);
	char text[INET_ADDRSTRLEN];

	assert_int_equal(
		getsockname(part(place, NETCATCH_PART_TCP), (struct sockaddr *)&at, &len), 0);
	inet_ntop(AF_INET, at.sin6_addr.s6_addr + 12, text, sizeof(text));
	assert_int_equal(
		run(place, reach, &(struct target){text, ntohs(at.sin6_port), SOCK_STREAM}),
		ECONNREFUSED);
	assert_int_equal(
		run(place, reach,
			&(struct target){text, (uint16_t)(ntohs(at.sin6_port) + 1), SOCK_STREAM}),
		ECONNREFUSED);
	assert_int_equal(ring_waiting(place->ring), 0);
}

/* ---- the place ---- */

static int open_netns(void)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), fd;

	assert_int_equal(unshare(CLONE_NEWNET), 0);
	fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_int_equal(setns(own, CLONE_NEWNET), 0);
	close(own);
	return fd;
}

static void open_group(struct place *place)
{
	struct {
		struct file_handle head;
		uint64_t id;
	} handle = {.head = {.handle_bytes = sizeof(handle.id)}};
	int mount_id;

	place->group = mem_printf("%s/cloche-test-%d", cgroup_v2_root(), (int)getpid());
	assert_int_equal(mkdir(place->group, 0755), 0);
	place->group_fd = open(place->group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(name_to_handle_at(AT_FDCWD, place->group, &handle.head, &mount_id, 0), 0);
	memcpy(&place->group_id, handle.head.f_handle, sizeof(place->group_id));
}

static struct netcatch *start_catching(const struct place *place)
{
	struct netcatch_config config = {
		.netns_fd = place->netns_fd, .cgroup_fd = place->group_fd, .cache = place->cache};

	return netcatch_start(&config);
}

static int open_place(void **state)
{
	struct place *place = new0(struct place);
	struct err err = {{0}};

	place->cache = mem_printf("/tmp/cloche-test-fields-%d", (int)getpid());
	place->netns_fd = open_netns();
	open_group(place);
	place->netcatch = start_catching(place);
	if (netcatch_wait(place->netcatch, &err) < 0 ||
		ring_open(fcntl(part(place, NETCATCH_PART_RING), F_DUPFD_CLOEXEC, 0), &place->ring,
			&err) < 0)
		fail_msg("%s", err.msg);
	*state = place;
	return 0;
}

static int close_place(void **state)
{
	struct place *place = *state;

	ring_free(place->ring);
	netcatch_free(place->netcatch);
	close(place->netns_fd);
	close(place->group_fd);
	assert_int_equal(rmdir(place->group), 0);
	(void)unlink(place->cache);
	free(place->group);
	free(place->cache);
	free(place);
	return 0;
}

/* Given up while it is being made. */
static void test_can_be_given_up(void **state)
{
	struct place *place = *state;

	netcatch_free(start_catching(place));
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, open_place, close_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(test_holds_streams_and_tells_whose),
		IN_PLACE(test_passed_stream_has_the_place_it_was_for),
		IN_PLACE(test_datagrams_arrive_and_tell_whose),
		IN_PLACE(test_refused_targets_fail_at_once),
		IN_PLACE(test_reset_forgets_what_was_entered),
		IN_PLACE(test_own_addresses_are_left_alone),
		IN_PLACE(test_tells_what_is_listened_on),
		IN_PLACE(test_gateway_cannot_be_dialled),
		IN_PLACE(test_can_be_given_up),
	};

	if (geteuid() != 0 || !cgroup_v2_root()) {
		puts("needs root and a cgroup2 hierarchy");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
