/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/seal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "launcher/ledger.h"
#include "record/record_head.h"
#include "util/jsonw.h"
#include "util/mem.h"

/* The record belongs to the user who asked; a folder that is gone is nobody's. */
static uid_t record_owner(const char *state_dir, const char *sandbox)
{
	scoped_mem char *path = mem_printf("%s/records/%s", state_dir, sandbox);
	struct stat st;

	return lstat(path, &st) < 0 ? (uid_t)-1 : st.st_uid;
}

static int enter(
	const char *state_dir, const char *sandbox, const struct record_head *head, struct err *err)
{
	bool goes_on = head->end == RECORD_OPEN || head->end == RECORD_SUSPENDED;
	struct ledger_line line = {.act = goes_on ? "head" : "end",
		.sandbox = sandbox,
		.head = head->head,
		.seq = head->seq,
		.owner = record_owner(state_dir, sandbox),
		.detail = head->end == RECORD_OPEN ? NULL : record_head_end_name(head->end)};

	return ledger_append(state_dir, &line, err);
}

static int answer(int sock, struct hostkey *key, struct slice signature, const char *error)
{
	scoped_str struct str text = {0};
	struct jsonw j = jsonw_to(&text);

	jsonw_object(&j);
	if (error) {
		jsonw_ktext(&j, "error", error);
	} else {
		jsonw_kslice(&j, "signature", signature);
		jsonw_ktext(&j, "key", hostkey_public_b64(key));
		jsonw_ktext(&j, "fingerprint", hostkey_fingerprint(key));
	}
	jsonw_object_end(&j);
	return send(sock, text.p, text.len, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int sign(int sock, struct hostkey *key, const char *state_dir, const char *sandbox,
	struct slice text, struct err *err)
{
	scoped_str struct str signature = {0};
	char id[RECORD_ID_MAX + 1];
	struct record_head head;
	int r = record_head_parse(text, id, &head);

	if (r < 0)
		return answer(sock, key, slice_of(""), "this is no head of a record");
	if (strcmp(id, sandbox) != 0)
		return answer(sock, key, slice_of(""), "this head is another sandbox's");
	r = enter(state_dir, sandbox, &head, err);
	if (r == 0 && hostkey_sign(key, text.p, text.len, &signature) < 0)
		r = err_set(err, -EIO, "sign a head of '%s' with the host key", sandbox);
	return r < 0 ? answer(sock, key, slice_of(""), err->msg)
	             : answer(sock, key, str_slice(&signature), NULL);
}

int seal_serve_one(
	int sock, struct hostkey *key, const char *state_dir, const char *sandbox, struct err *err)
{
	char request[RECORD_HEAD_TEXT_MAX + 1];
	ssize_t n;
	int r;

	do {
		n = recv(sock, request, sizeof(request), 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set(err, -errno, "read a head to be signed: %m");
	if (n == 0)
		return -EPIPE;
	r = sign(
		sock, key, state_dir, sandbox, (struct slice){.p = request, .len = (size_t)n}, err);
	return r == -EPIPE ? err_set(err, r, "the supervisor of '%s' is gone", sandbox) : r;
}
