/* SPDX-License-Identifier: Apache-2.0 */
/* Many watchers of one sandbox, each a connection of its own that reads all it is sent. Prints one line of JSON: how many
 * watchers got every event, and how long after its moment an event was there.
 *
 *     watch_load PORT KEY SANDBOX WATCHERS EVENTS
 *
 * An event is a file.open of /workspace/atNANOSECONDS...; the clock is the same in a sandbox and outside. Ends when each has
 * EVENTS of them, or when nothing has come for 10 s. "ready" is printed before, when all watchers are answered. */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 16384
#define READ_BYTES     65536
#define QUIET_MS       10000
#define MARK           "/workspace/at"

struct watcher {
	int fd, n;
	bool is_answered;
	size_t len;
	char line[LINE_MAX_BYTES];
};

static struct {
	int n_watchers, n_events, n_answered, n_done;
	double *delay_ms;
	size_t n_delays;
	unsigned long long bytes;
} load;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int connect_to(int port, const char *key, const char *sandbox)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons((in_port_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char request[1024];
	int n = snprintf(request, sizeof(request),
		"GET /v1/sandboxes/%s/watch?events=true HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
		"Authorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n",
		sandbox, port, key);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
		send(fd, request, (size_t)n, 0) != n)
		die("connect");
	return fd;
}

static void take_line(struct watcher *w)
{
	char *at;

	w->line[w->len] = '\0';
	if (!w->is_answered && strncmp(w->line, "HTTP/1.1 ", 9) == 0) {
		if (strncmp(w->line + 9, "200", 3) != 0) {
			fprintf(stderr, "watch_load: %s\n", w->line);
			exit(1);
		}
		w->is_answered = true;
		if (++load.n_answered == load.n_watchers)
			printf("ready\n"), fflush(stdout);
	}
	at = strncmp(w->line, "data: ", 6) == 0 && strstr(w->line, "\"file.open\"")
	             ? strstr(w->line, MARK)
	             : NULL;
	if (!at)
		return;
	load.delay_ms[load.n_delays++] = (now_ns() - strtod(at + strlen(MARK), NULL)) / 1e6;
	if (++w->n == load.n_events)
		load.n_done++;
}

static void take_bytes(struct watcher *w, const char *bytes, size_t n)
{
	load.bytes += n;
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			take_line(w);
			w->len = 0;
		} else if (w->len < sizeof(w->line) - 1) {
			w->line[w->len++] = bytes[i];
		}
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(void)
{
	double *d = load.delay_ms;
	size_t n = load.n_delays;

	qsort(d, n, sizeof(*d), by_value);
	printf("{\"watchers\": %d, \"missed_none\": %d, \"events\": %zu, \"mb\": %.1f, "
	       "\"p50_ms\": %.1f, \"p99_ms\": %.1f, \"max_ms\": %.1f}\n",
		load.n_watchers, load.n_done, n, (double)load.bytes / 1e6, n ? d[n / 2] : 0,
		n ? d[n * 99 / 100] : 0, n ? d[n - 1] : 0);
}

int main(int argc, char **argv)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), n;
	struct epoll_event events[256];
	static char bytes[READ_BYTES];

	if (argc != 6 || epoll < 0) {
		fprintf(stderr, "usage: watch_load PORT KEY SANDBOX WATCHERS EVENTS\n");
		return 2;
	}
	load.n_watchers = (int)strtol(argv[4], NULL, 10);
	load.n_events = (int)strtol(argv[5], NULL, 10);
	load.delay_ms = calloc((size_t)load.n_watchers * (size_t)load.n_events, sizeof(double));
	for (int i = 0; i < load.n_watchers; i++) {
		struct watcher *w = calloc(1, sizeof(*w));
		struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};

		w->fd = connect_to((int)strtol(argv[1], NULL, 10), argv[2], argv[3]);
		epoll_ctl(epoll, EPOLL_CTL_ADD, w->fd, &ev);
	}
	while (load.n_done < load.n_watchers && (n = epoll_wait(epoll, events, 256, QUIET_MS)) > 0)
		for (int i = 0; i < n; i++) {
			struct watcher *w = events[i].data.ptr;
			ssize_t got = recv(w->fd, bytes, sizeof(bytes), 0);

			if (got > 0)
				take_bytes(w, bytes, (size_t)got);
			else
				epoll_ctl(epoll, EPOLL_CTL_DEL, w->fd, NULL);
		}
	report();
	return 0;
}
