/* SPDX-License-Identifier: Apache-2.0 */
/* Interception of one TLS flow, as a machine (machine.h) whose bytes are those of the two sockets.
 *
 * Order: upstream was dialled before; its handshake is done first, with what the program offers of ALPN, and its
 * certificate verified; then ours towards the program, agreeing to what upstream chose; then a machine that
 * the owner gives for that protocol gets the plain bytes of both. The program's hello stays in its socket until
 * then. Nothing of the program's goes upstream over a connection whose certificate was not verified: where it is not
 * valid the program gets the alert that tells so, and no handshake. */
#ifndef GATEWAY_MITM_H
#define GATEWAY_MITM_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/ca.h"
#include "gateway/machine.h"
#include "gateway/policy.h"
#include "gateway/tls_client.h"
#include "proto/tls_hello.h"

enum mitm_verdict {
	MITM_REFUSE,      /* by mitm_alert() */
	MITM_PASSTHROUGH, /* its bytes are relayed as they are */
	MITM_INTERCEPT,
};

struct mitm_flow {
	const char *host; /* the name that led here; NULL: a raw address */
	/* Whether this name, too, led to the address. NULL: only host did. */
	bool (*has_name)(void *data, const char *name);
	void *data;
	uint8_t address[16]; /* what was dialled */
	bool has_address;    /* false: nothing was, the name is refused */
	uint16_t port;
};

struct mitm_decision {
	enum mitm_verdict verdict;
	char host
		[URL_HOST_MAX]; /* the flow's name from now on: whom upstream must be; "": the address */
	bool is_unreadable;          /* passed through because the hello is none that we read */
	struct policy_answer answer; /* why; what let it through with --shadow */
};

/* What is done with a flow whose hello was read (its result is not MORE or NOT_TLS). Pure. Names have to agree: the
 * one asked for and the one that led here; without an allow list another name is asked about like any. */
void mitm_decide(const struct policy *policy, const struct spec_network *network,
	const struct mitm_flow *flow, const struct tls_hello *hello, struct mitm_decision *ret);

/* The bytes that tell a client, before any handshake, that access is denied. */
struct slice mitm_alert(void);

struct mitm;

struct mitm_config {
	struct tls_client *client;
	struct ca *ca;
	const char *host;       /* of the decision; NULL: none */
	const uint8_t *address; /* 16 bytes; NULL: none */
	uint16_t port;
	bool asked_for_name; /* the hello named host; else the certificate names the address as well */
	struct slice alpn; /* the hello's */
	bool has_upstream; /* false: only the program is there, to be told why it is refused */
	/* Gives the machine for the protocol ("h2", "http/1.1", ""), which mitm then owns; called once at most. Without
	 * has_upstream it hears nothing of MACHINE_SERVER. */
	void (*open)(void *data, const char *alpn, struct machine *ret);
	void *data;
};

/* Copies what it needs, but for client and ca. NULL where OpenSSL refuses. */
struct mitm *mitm_new(const struct mitm_config *config);
extern const struct machine_ops mitm_machine; /* its self is a struct mitm */

/* What went wrong, a sentence for net.flow's error, or "". */
const char *mitm_error(const struct mitm *mitm);
/* The handshakes are under way: what the program sends now is answered by nothing that would carry its receipt. */
bool mitm_is_opening(const struct mitm *mitm);
/* Upstream's part of that: nothing of the program's is taken yet. */
bool mitm_waits_for_upstream(const struct mitm *mitm);
/* The program was offered our certificate and did not take it: what it would have asked is not known. */
bool mitm_is_unread(const struct mitm *mitm);
/* It kept the flow from working; else it is a remark (the program left without a word). */
bool mitm_has_failed(const struct mitm *mitm);

#endif
