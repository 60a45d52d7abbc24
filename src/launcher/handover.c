/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/authority.h"
#include "util/fdio.h"
#include "util/scoped.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int write_hidden(const struct handover *h, const struct spec_network *network)
{
	scoped_secret struct str line = {0};
	int r = 0;

	if (spec_hidden_write(&line, network)) {
		if (line.p[line.len - 1] != '\n')
			str_putc(&line, '\n');
		r = fdio_write_all(h->secrets_fd, line.p, line.len);
	}
	return r;
}

static int raise_fd(int *fd, int lowest)
{
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, lowest);

	if (high < 0)
		return -errno;
	scoped_close(fd);
	*fd = high;
	return 0;
}

int handover_open(
	struct handover *h, const struct spec_network *network, int lowest, struct err *err)
{
	int pair[2], r;

	*h = HANDOVER_NONE;
	if (network->net == SPEC_NET_NONE)
		return 0;
	h->secrets_fd = memfd_create("secrets", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (h->secrets_fd < 0 || pipe2(pair, O_CLOEXEC) < 0)
		return err_set(err, -errno, "make what the gateway is handed: %m");
	h->trust_fd = pair[0];
	h->to_trust_fd = pair[1];
	r = raise_fd(&h->secrets_fd, lowest);
	if (r == 0)
		r = raise_fd(&h->trust_fd, lowest);
	if (r == 0)
		r = write_hidden(h, network);
	return r < 0 ? err_set(err, r, "write what the gateway is handed: %m") : 0;
}

int handover_fill(struct handover *h, const char *sandbox, struct err *err)
{
	scoped_secret struct str hidden = {0};
	scoped_str struct str trust = {0};
	int r;

	if (h->secrets_fd < 0)
		return 0;
	r = authority_make(sandbox, &hidden, &trust, err);
	if (r == 0 && ((r = fdio_write_all(h->secrets_fd, hidden.p, hidden.len)) < 0 ||
			      (r = fcntl(h->secrets_fd, F_ADD_SEALS, SEALS) < 0 ? -errno : 0) < 0 ||
			      (r = fdio_write_all(h->to_trust_fd, trust.p, trust.len)) < 0))
		r = err_set(err, r, "write what the gateway is handed: %m");
	scoped_close(&h->to_trust_fd);
	h->to_trust_fd = -1;
	return r;
}

void handover_done(struct handover *h)
{
	scoped_close(&h->secrets_fd);
	scoped_close(&h->trust_fd);
	scoped_close(&h->to_trust_fd);
	*h = HANDOVER_NONE;
}
