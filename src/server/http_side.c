/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http_side.h"

#include <event2/bufferevent_ssl.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <sys/socket.h>

struct bufferevent *http_side_open(struct event_base *base, int fd, SSL_CTX *tls)
{
	if (!tls)
		return bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	return bufferevent_openssl_socket_new(
		base, fd, SSL_new(tls), BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
}

bool http_side_is_plain(struct bufferevent *bev)
{
	SSL *tls = bufferevent_openssl_get_ssl(bev);
	unsigned long e;
	bool is = false;

	while (tls && (e = bufferevent_get_openssl_error(bev)))
		is |= ERR_GET_LIB(e) == ERR_LIB_SSL &&
		      (ERR_GET_REASON(e) == SSL_R_HTTP_REQUEST ||
			      ERR_GET_REASON(e) == SSL_R_HTTPS_PROXY_REQUEST ||
			      ERR_GET_REASON(e) == SSL_R_WRONG_VERSION_NUMBER);
	return is && !SSL_is_init_finished(tls);
}

struct bufferevent *http_side_make_plain(struct event_base *base, struct bufferevent *bev)
{
	int fd = fcntl(bufferevent_getfd(bev), F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return NULL;
	bufferevent_free(bev);
	return bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
}

int http_side_take_head(
	struct evbuffer *in, size_t *scanned, struct str *out, struct http1_fault *ret_fault)
{
	size_t len = evbuffer_get_length(in);
	struct slice bytes;
	long n;

	if (len > HTTP1_MAX_HEAD)
		len = HTTP1_MAX_HEAD;
	if (len == 0)
		return 0;
	bytes = (struct slice){.p = (const char *)evbuffer_pullup(in, (ev_ssize_t)len), .len = len};
	n = http1_find_end(bytes, scanned, ret_fault);
	if (n == 0 && len == HTTP1_MAX_HEAD) {
		*ret_fault = (struct http1_fault){431, "the head of the request is too long"};
		return -1;
	}
	if (n <= 0)
		return (int)n;
	str_add(out, bytes.p, (size_t)n);
	evbuffer_drain(in, (size_t)n);
	*scanned = 0;
	return 1;
}

void http_side_say_end(struct bufferevent *bev)
{
	SSL *tls = bufferevent_openssl_get_ssl(bev);

	if (!tls)
		return;
	(void)SSL_shutdown(tls);
	ERR_clear_error();
}

void http_side_shut(struct bufferevent *bev)
{
	struct evbuffer *in = bufferevent_get_input(bev);

	http_side_say_end(bev);
	(void)shutdown(bufferevent_getfd(bev), SHUT_WR); /* gone already: its end is read next */
	evbuffer_drain(in, evbuffer_get_length(in));
	bufferevent_enable(bev, EV_READ);
}
