/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

#define CONNECT_MS  10000L
#define KEEPALIVE_S 30L
#define STREAM_TYPE "text/event-stream"

void transfer_free(struct transfer *transfer)
{
	if (!transfer)
		return;
	if (transfer->easy) {
		curl_multi_remove_handle(transfer->multi, transfer->easy);
		curl_easy_cleanup(transfer->easy);
	}
	curl_slist_free_all(transfer->head);
	sse_done(&transfer->sse);
	if (transfer->sent.p)
		explicit_bzero(transfer->sent.p, transfer->sent.cap); /* it may hold a secret */
	str_done(&transfer->sent);
	str_done(&transfer->body);
	free(transfer);
}

static void read_status(struct transfer *transfer)
{
	const char *type = NULL;

	if (transfer->status)
		return;
	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &transfer->status);
	curl_easy_getinfo(transfer->easy, CURLINFO_CONTENT_TYPE, &type);
	transfer->is_stream = transfer->sse.on_event && transfer->status == 200 && type &&
	                      slice_starts(slice_of(type), STREAM_TYPE);
}

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
	struct transfer *transfer = ctx;
	struct slice in = {.p = bytes, .len = size * n};
	int r = 0;

	read_status(transfer);
	if (transfer->is_stream)
		r = sse_read(&transfer->sse, in);
	else if (transfer->body.len + in.len > TRANSFER_BODY_MAX)
		r = -EFBIG;
	else
		str_add(&transfer->body, in.p, in.len);
	if (r < 0)
		transfer->handler_error = r;
	return r < 0 ? CURL_WRITEFUNC_ERROR : in.len;
}

static void add_field(struct transfer *transfer, const char *name, const char *value)
{
	scoped_mem char *line = value ? mem_printf("%s: %s", name, value) : NULL;

	if (line)
		transfer->head = curl_slist_append(transfer->head, line);
}

static void add_fields(struct transfer *transfer, const struct link *link, const struct ask *ask)
{
	scoped_mem char *bearer = link->key ? mem_printf("Bearer %s", link->key) : NULL;

	add_field(transfer, "Authorization", bearer);
	add_field(transfer, "Accept", ask->accept ? ask->accept : "application/json");
	add_field(transfer, "Idempotency-Key", ask->once);
	add_field(transfer, "Last-Event-ID", ask->after);
	if (ask->body.p)
		add_field(transfer, "Content-Type", ask->type ? ask->type : "application/json");
	transfer->head = curl_slist_append(transfer->head, "Expect:"); /* no round trip more */
	if (bearer)
		explicit_bzero(bearer, strlen(bearer));
}

static void set_method(struct transfer *transfer, const struct ask *ask)
{
	const char *method = ask->method ? ask->method : "GET";

	if (strcmp(method, "GET") == 0 || strcmp(method, "DELETE") == 0) {
		curl_easy_setopt(transfer->easy, CURLOPT_HTTPGET, 1L);
	} else {
		str_add(&transfer->sent, ask->body.p ? ask->body.p : "", ask->body.len);
		curl_easy_setopt(transfer->easy, CURLOPT_POST, 1L);
		curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDS,
			transfer->sent.p ? transfer->sent.p : "");
		curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDSIZE_LARGE,
			(curl_off_t)transfer->sent.len);
	}
	curl_easy_setopt(transfer->easy, CURLOPT_CUSTOMREQUEST, method);
}

/* No redirect and nothing of the environment but its proxies, and those not for what is on this host: the key goes where it
 * was told to go. */
static void set_way(struct transfer *transfer, const struct link *link)
{
	curl_easy_setopt(transfer->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(transfer->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(transfer->easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(transfer->easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(transfer->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(transfer->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(transfer->easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(transfer->easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S);
	curl_easy_setopt(transfer->easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S);
	curl_easy_setopt(transfer->easy, CURLOPT_USERAGENT, "Cloche/" CLOCHE_VERSION);
	if (link->address.is_near)
		curl_easy_setopt(transfer->easy, CURLOPT_PROXY, "");
	if (link->address.socket)
		curl_easy_setopt(transfer->easy, CURLOPT_UNIX_SOCKET_PATH, link->address.socket);
	if (link->ca) {
		curl_easy_setopt(transfer->easy, CURLOPT_CAINFO, link->ca);
		curl_easy_setopt(transfer->easy, CURLOPT_CAPATH, NULL);
	}
}

struct transfer *transfer_start(struct link *link, const struct ask *ask)
{
	struct transfer *transfer = new0(struct transfer);
	scoped_mem char *url = mem_printf("%s%s", link->address.base, ask->path);

	transfer->multi = link->multi;
	transfer->sse = (struct sse){.on_event = ask->on_event, .ctx = ask->ctx};
	transfer->easy = curl_easy_init();
	if (!transfer->easy) {
		transfer_end(transfer, CURLE_OUT_OF_MEMORY);
		return transfer;
	}
	add_fields(transfer, link, ask);
	set_method(transfer, ask);
	set_way(transfer, link);
	curl_easy_setopt(transfer->easy, CURLOPT_URL, url);
	curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->head);
	curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
	curl_easy_setopt(transfer->easy, CURLOPT_ERRORBUFFER, transfer->why);
	curl_easy_setopt(transfer->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(transfer->easy, CURLOPT_WRITEDATA, transfer);
	if (curl_multi_add_handle(link->multi, transfer->easy) != CURLM_OK)
		transfer_end(transfer, CURLE_FAILED_INIT);
	return transfer;
}

void transfer_end(struct transfer *transfer, CURLcode result)
{
	if (transfer->easy)
		read_status(transfer);
	transfer->result = result;
	transfer->is_over = true;
}

void transfer_wait(struct link *link, struct transfer *transfer)
{
	while (!transfer->is_over)
		link_work(link, NULL, 0, 60000);
}

static int no_way(
	const struct link *link, const struct transfer *transfer, const char *why, struct err *err)
{
	long system_error = 0;

	if (transfer->easy)
		curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &system_error);
	if (link->address.socket && system_error)
		why = strerror((int)system_error); /* libcurl speaks of a host and a port */
	if (link->address.socket)
		return err_set(err, -ECONNREFUSED,
			"no control plane answers at %s (%s): `sudo cloche serve` starts one on "
			"this host; root and the group cloche may use its socket, and --server "
			"names another",
			link->address.shown, why);
	return err_set(err, -ECONNREFUSED,
		"no control plane can be reached at %s (%s): check the URL (--server, "
		"CLOCHE_SERVER), and whether `cloche serve` runs and listens there",
		link->address.shown, why);
}

/* It was there, and may have got what was asked. */
static bool was_there(const struct transfer *transfer)
{
	return transfer->status || transfer->result == CURLE_GOT_NOTHING ||
	       transfer->result == CURLE_RECV_ERROR || transfer->result == CURLE_SEND_ERROR;
}

int transfer_check(const struct link *link, const struct transfer *transfer, struct err *err)
{
	const char *why = transfer->why[0] ? transfer->why : curl_easy_strerror(transfer->result);
	CURLcode result = transfer->result;

	if (transfer->handler_error == -EFBIG)
		return err_set(err, -EFBIG, "the answer of %s is longer than %u MiB",
			link->address.shown, TRANSFER_BODY_MAX >> 20);
	if (transfer->handler_error < 0)
		return transfer->handler_error;
	if (result == CURLE_OK)
		return 0;
	if (result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CACERT_BADFILE)
		return err_set(err, -EACCES,
			"the certificate of %s is not to be trusted (%s): --server-ca FILE names "
			"the authority that signed it",
			link->address.shown, why);
	if (!was_there(transfer))
		return no_way(link, transfer, why, err);
	return err_set(
		err, -ECONNRESET, "the connection to %s was lost (%s)", link->address.shown, why);
}

long transfer_retry_after(const struct transfer *transfer)
{
	curl_off_t s = 0;

	if (transfer->easy)
		curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &s);
	return (long)s;
}
