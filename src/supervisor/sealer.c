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

static bool ask(struct sealer *sealer)
{
	struct supervisor *sup = sealer->sup;

	sealer->is_waiting = seal_request_send(sealer->sock, sup->record, sup->id, RECORD_OPEN,
				     &sealer->asked) == 0;
	return sealer->is_waiting;
}

static bool keep(struct sealer *sealer)
{
	sealer->is_waiting = false;
	return seal_request_keep(sealer->sock, sealer->sup->record, &sealer->asked) == 0;
}

static void on_answer(void *ctx, unsigned what)
{
	struct sealer *sealer = ctx;

	if (!keep(sealer))
		loop_io_set(sealer->io, 0); /* the signer is gone; sealer_finish() will say so */
}

static void on_time(void *ctx)
{
	struct sealer *sealer = ctx;

	sealer->is_armed = false;
	recorder_flush(sealer->sup->recorder, false);
	if (sealer->is_waiting || !ask(sealer))
		sealer_poke(sealer); /* the signer is slow: again later */
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

bool sealer_finish(struct sealer *sealer)
{
	struct pollfd p = {.fd = sealer->sock, .events = POLLIN};

	if (sealer->is_waiting && (poll(&p, 1, FINISH_MS) != 1 || !keep(sealer)))
		return false;
	return seal_request(sealer->sock, sealer->sup->record, sealer->sup->id, RECORD_FINAL) == 0;
}
