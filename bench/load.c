/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for /page over HTTPS, eight at once, and prints how many a second and how long one took; ends with 1 where one
 * fails. ab cannot do this: it speaks TLS with the proxy itself instead of through it.
 *
 *     load CA ADDRESS PORT NAME kept|new|resumed COUNT [PROXY_PORT]
 *
 * ADDRESS may be a name, which is looked up once. The certificate must be NAME's, by CA or the usual roots. A proxy is
 * asked for a way (CONNECT) on 127.0.0.1. resumed: a new connection each, which takes up the session of the one before. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WORKERS     8
#define BUFFER      8192
#define REQUEST_MAX 512

static struct {
	SSL_CTX *ctx;
	const char *address, *port, *name;
	struct sockaddr_in to;
	bool kept, resumed, has_proxy;
	char request[REQUEST_MAX], connect[REQUEST_MAX];
	int each;
	double *took_ns; /* of all workers' requests */
} load;

struct worker {
	pthread_t thread;
	double *took_ns;
	SSL_SESSION *session;
	SSL *ssl;
	int fd;
};

static void die(const char *what)
{
	fprintf(stderr, "load: %s\n", what);
	ERR_print_errors_fp(stderr);
	exit(1);
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void ask_proxy(int fd)
{
	char answer[BUFFER];
	size_t len = 0;

	if (send(fd, load.connect, strlen(load.connect), MSG_NOSIGNAL) < 0)
		die("the proxy is not there");
	do {
		ssize_t n = recv(fd, answer + len, sizeof(answer) - 1 - len, 0);

		if (n <= 0)
			die("the proxy closed");
		len += (size_t)n;
		answer[len] = 0;
	} while (!strstr(answer, "\r\n\r\n"));
	if (!strstr(answer, " 200 "))
		die(answer);
}

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct worker *w = SSL_get_app_data(ssl);

	SSL_SESSION_free(w->session);
	w->session = session;
	return 1;
}

static void open_connection(struct worker *w)
{
	int one = 1;

	w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (w->fd < 0 || connect(w->fd, (struct sockaddr *)&load.to, sizeof(load.to)) < 0)
		die("no connection");
	setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (load.has_proxy)
		ask_proxy(w->fd);
	w->ssl = SSL_new(load.ctx);
	SSL_set_app_data(w->ssl, w);
	SSL_set_fd(w->ssl, w->fd);
	SSL_set_tlsext_host_name(w->ssl, load.name);
	SSL_set1_host(w->ssl, load.name);
	if (load.resumed && w->session)
		SSL_set_session(w->ssl, w->session);
	if (SSL_connect(w->ssl) != 1)
		die("no TLS");
}

static void close_connection(struct worker *w)
{
	SSL_shutdown(w->ssl);
	SSL_free(w->ssl);
	close(w->fd);
	w->ssl = NULL;
}

/* One page: a head with a length, and that much. */
static void ask(struct worker *w)
{
	char answer[BUFFER], *body, *length;
	size_t len = 0, whole = sizeof(answer);

	if (SSL_write(w->ssl, load.request, (int)strlen(load.request)) <= 0)
		die("no request");
	while (len < whole) {
		int n = SSL_read(w->ssl, answer + len, (int)(sizeof(answer) - 1 - len));

		if (n <= 0)
			die("no answer");
		len += (size_t)n;
		answer[len] = 0;
		body = strstr(answer, "\r\n\r\n");
		length = strcasestr(answer, "content-length:");
		if (body && length)
			whole = (size_t)(body + 4 - answer) + strtoul(length + 15, NULL, 10);
		else if (body)
			die(answer);
	}
	if (strncmp(answer + strlen("HTTP/1.x"), " 200", 4) != 0)
		die(answer);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < load.each; i++) {
		double begin = now_ns();

		if (!w->ssl)
			open_connection(w);
		ask(w);
		if (!load.kept)
			close_connection(w);
		w->took_ns[i] = now_ns() - begin;
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void find_address(const char *port)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;

	if (getaddrinfo(load.has_proxy ? "127.0.0.1" : load.address, port, &hints, &found) != 0)
		die("no such name");
	memcpy(&load.to, found->ai_addr, sizeof(load.to));
	freeaddrinfo(found);
}

static void prepare(const char *ca)
{
	load.ctx = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_default_verify_paths(load.ctx);
	SSL_CTX_load_verify_locations(load.ctx, ca, NULL); /* not there: the usual roots do */
	ERR_clear_error();
	SSL_CTX_set_verify(load.ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_alpn_protos(load.ctx, (const unsigned char *)"\10http/1.1", 9);
	if (load.resumed) {
		SSL_CTX_set_session_cache_mode(
			load.ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
		SSL_CTX_sess_set_new_cb(load.ctx, on_session);
	}
	snprintf(load.request, sizeof(load.request),
		"GET /page HTTP/1.1\r\nHost: %s:%s\r\nConnection: %s\r\n\r\n", load.name, load.port,
		load.kept ? "keep-alive" : "close");
	snprintf(load.connect, sizeof(load.connect),
		"CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", load.address, load.port,
		load.address, load.port);
}

int main(int argc, char **argv)
{
	static struct worker workers[WORKERS];
	double begin, took_ns;
	size_t n;

	if (argc < 7)
		die("CA ADDRESS PORT NAME kept|new|resumed COUNT [PROXY_PORT]");
	load.address = argv[2];
	load.port = argv[3];
	load.name = argv[4];
	load.kept = strcmp(argv[5], "kept") == 0;
	load.resumed = strcmp(argv[5], "resumed") == 0;
	load.each = (int)strtol(argv[6], NULL, 10) / WORKERS;
	load.has_proxy = argc > 7;
	prepare(argv[1]);
	find_address(load.has_proxy ? argv[7] : argv[3]);
	n = (size_t)load.each * WORKERS;
	load.took_ns = calloc(n, sizeof(double));
	begin = now_ns();
	for (int i = 0; i < WORKERS; i++) {
		workers[i].took_ns = load.took_ns + i * load.each;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	took_ns = now_ns() - begin;
	qsort(load.took_ns, n, sizeof(double), compare);
	printf("{\"per_s\": %.1f, \"p50_us\": %.0f, \"p99_us\": %.0f}\n", (double)n * 1e9 / took_ns,
		load.took_ns[n / 2] / 1e3, load.took_ns[n * 99 / 100] / 1e3);
	return 0;
}
