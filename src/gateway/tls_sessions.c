/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tls_sessions.h"

#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/mem.h"
#include "util/str.h"

#define SESSIONS_MAX 64                     /* a few KiB each, with the certificates */
#define ALIKE_MAX    4                      /* of one key: servers give two to a connection */
#define LIFE_NS      (600 * CLOCK_NS_PER_S) /* then the certificate is looked at again */

struct kept {
	struct str key;
	SSL_SESSION *session;
	int64_t since_ns;
};

struct tls_sessions {
	struct kept kept[SESSIONS_MAX]; /* the oldest first */
	size_t n;
};

struct tls_sessions *tls_sessions_new(void)
{
	return new0(struct tls_sessions);
}

static void drop(struct tls_sessions *all, size_t i)
{
	SSL_SESSION_free(all->kept[i].session);
	str_done(&all->kept[i].key);
	all->n--;
	memmove(all->kept + i, all->kept + i + 1, (all->n - i) * sizeof(all->kept[0]));
}

void tls_sessions_free(struct tls_sessions *all)
{
	if (!all)
		return;
	while (all->n > 0)
		drop(all, all->n - 1);
	free(all);
}

/* The oldest that has to go for one more of this key; n: none has to. */
static size_t find_victim(const struct tls_sessions *all, struct slice key)
{
	size_t alike = 0, oldest = all->n;

	for (size_t i = all->n; i > 0; i--)
		if (slice_eq(str_slice(&all->kept[i - 1].key), key)) {
			alike++;
			oldest = i - 1;
		}
	if (alike >= ALIKE_MAX)
		return oldest;
	return all->n == SESSIONS_MAX ? 0 : all->n;
}

void tls_sessions_add(struct tls_sessions *all, struct slice key, SSL_SESSION *session)
{
	size_t victim = find_victim(all, key);
	struct kept *kept;

	if (victim < all->n)
		drop(all, victim);
	kept = &all->kept[all->n++];
	*kept = (struct kept){.session = session, .since_ns = clock_mono_ns()};
	str_add(&kept->key, key.p, key.len);
}

static bool is_good(const struct kept *kept)
{
	const X509 *x = SSL_SESSION_get0_peer(kept->session);

	return clock_mono_ns() - kept->since_ns < LIFE_NS &&
	       SSL_SESSION_is_resumable(kept->session) && x &&
	       X509_cmp_current_time(X509_get0_notAfter(x)) > 0;
}

SSL_SESSION *tls_sessions_take(struct tls_sessions *all, struct slice key)
{
	for (size_t i = all->n; i > 0; i--) {
		struct kept *kept = &all->kept[i - 1];
		SSL_SESSION *session = kept->session;

		if (!slice_eq(str_slice(&kept->key), key))
			continue;
		if (!is_good(kept)) {
			drop(all, i - 1);
			continue;
		}
		SSL_SESSION_up_ref(session);
		if (SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION)
			drop(all, i - 1);
		return session;
	}
	return NULL;
}
