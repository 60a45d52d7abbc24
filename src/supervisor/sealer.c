/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/sealer.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "supervisor/seal_request.h"
#include "util/mem.h"

#define EVERY_MS  2000
#define FINISH_MS 5000

struct sealer {
	struct supervisor *sup;
	int sock;
	struct loop_io *io;
	struct loop_timer *timer;
	struct record_head asked; /* the head under way */
	bool is_waiting, is_armed;
};

/* The signer is gone for good: no more is asked, and the record's end stays open for gc to sign as cut. */
static void give_up(struct sealer *sealer)
{
	loop_io_free(sealer->io);
	sealer->io = NULL;
	close(sealer->sock);
	sealer->sock = -1;
}

static void keep(struct sealer *sealer)
{
	int r = seal_request_keep(sealer->sock, sealer->sup->record, &sealer->asked);

	sealer->is_waiting = false;
	if (r == -EPIPE)
		give_up(sealer);
	else if (r < 0)
		sealer_poke(sealer); /* a full disk, a ledger that cannot be written: it may pass */
}

static void on_answer(void *ctx, unsigned what)
{
	keep(ctx);
}

static void on_time(void *ctx)
{
	struct sealer *sealer = ctx;
	struct supervisor *sup = sealer->sup;
	int r = -EAGAIN;

	sealer->is_armed = false;
	recorder_flush(sup->recorder, false);
	if (!sealer->is_waiting)
		r = seal_request_send(
			sealer->sock, sup->record, sup->id, RECORD_OPEN, &sealer->asked);
	if (r == 0)
		sealer->is_waiting = true;
	else if (r == -EAGAIN)
		sealer_poke(sealer); /* the signer is slow: again later */
	else
		give_up(sealer);
}

void sealer_poke(struct sealer *sealer)
{
	if (sealer->is_armed || sealer->sock < 0)
		return;
	sealer->is_armed = true;
	loop_timer_set(sealer->timer, EVERY_MS);
}

struct sealer *sealer_new(struct supervisor *sup, int sock)
{
	struct sealer *sealer = new0(struct sealer);

	sealer->sup = sup;
	sealer->sock = sock;
	if (sock < 0)
		return sealer;
	sealer->io = loop_io_new(sup->loop, sock, LOOP_READ, on_answer, sealer);
	sealer->timer = loop_timer_new(sup->loop, on_time, sealer);
	return sealer;
}

void sealer_free(struct sealer *sealer)
{
	if (!sealer)
		return;
	loop_io_free(sealer->io);
	loop_timer_free(sealer->timer);
	if (sealer->sock >= 0)
		close(sealer->sock);
	free(sealer);
}

bool sealer_finish(struct sealer *sealer, enum record_end end)
{
	struct pollfd p = {.fd = sealer->sock, .events = POLLIN};

	if (sealer->is_waiting) {
		if (poll(&p, 1, FINISH_MS) != 1)
			return false;
		keep(sealer);
	}
	return seal_request(sealer->sock, sealer->sup->record, sealer->sup->id, end) == 0;
}
