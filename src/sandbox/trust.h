/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox trusts beyond the roots of its own root filesystem: the authority of its gateway. In the system's
 * store (bundle, hashed folder, Java's keystore), in files laid over the root's lower folder, so that nothing of it
 * shows as a change; and in the variables of programs that look nowhere else. With it comes the name server, which
 * an unpacked root has not.
 *
 * Only what has to differ is made, in memory: the bundle's bytes have to be there once more for each sandbox,
 * since files can share no parts. That takes 0.4 ms, 0.6 with a keystore, in a thread beside the rest of a sandbox's making. */
#ifndef SANDBOX_TRUST_H
#define SANDBOX_TRUST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "spec/spec.h"
#include "util/err.h"

/* Where programs inside find the certificate alone. */
#define TRUST_FILE "/etc/ssl/certs/cloche-sandbox.pem"

struct trust {
	pthread_t thread;
	bool is_running;
	char *root; /* see struct trust_root */
	int root_fd;
	uint32_t owner; /* host id of root inside */
	int source_fd;  /* where the certificate comes from: launcher/authority.h */
	int fd;         /* the folder to be laid over, attached nowhere; -1: none */
	char *bundle;   /* inside: all roots that are trusted, ours too */
	int r;
	struct err err;
};

#define TRUST_NONE ((struct trust){.root_fd = -1, .source_fd = -1, .fd = -1})

/* What the root shows without it. */
struct trust_root {
	const char *path; /* on the host, where that is one folder */
	int fd;           /* else a mount attached nowhere, taken over; -1: path */
	uint32_t owner;   /* host id of root inside */
};
/* Starts making it. Takes source_fd over; -1: nothing is to be made. */
void trust_begin(struct trust *trust, const struct trust_root *root, int source_fd);
/* Waits for it. trust->fd is there afterwards, or a sentence. */
int trust_finish(struct trust *trust, struct err *err);
void trust_done(struct trust *trust);

/* Adds K=V for those who look in variables. */
void trust_add_env(const struct trust *trust, struct spec_words *env);

#endif
