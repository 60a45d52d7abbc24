/* SPDX-License-Identifier: Apache-2.0 */
#include "image/progress.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/str.h"

#define STEP_NS  (200 * CLOCK_NS_PER_MS)
#define FIRST_NS (400 * CLOCK_NS_PER_MS) /* what is done by then needs no words */
#define MEGABYTE 1e6
#define CLEAR    "\r\033[K"

static bool is_wanted, is_shown;
static int64_t next_ns;
static volatile sig_atomic_t stop_signal;

void progress_begin(bool is_on)
{
	is_wanted = is_on;
	next_ns = clock_mono_ns() + FIRST_NS;
}

static void put(const struct str *line)
{
	(void)fdio_write_all(STDERR_FILENO, line->p, line->len); /* nobody looks: fine */
}

void progress_show(const char *what, uint64_t done, uint64_t total)
{
	scoped_str struct str line = {0};
	int64_t now = clock_mono_ns();

	if (!is_wanted || now < next_ns)
		return;
	next_ns = now + STEP_NS;
	str_puts(&line, CLEAR);
	log_add_escaped(&line, slice_of(what));
	str_printf(&line, " %.1f MB", (double)done / MEGABYTE);
	if (total)
		str_printf(&line, " of %.1f MB", (double)total / MEGABYTE);
	put(&line);
	is_shown = true;
}

void progress_clear(void)
{
	scoped_str struct str line = {0};

	if (!is_shown)
		return;
	str_puts(&line, CLEAR);
	put(&line);
	is_shown = false;
}

static void on_signal(int number)
{
	stop_signal = number;
}

void progress_catch_signals(void)
{
	/* Without SA_RESTART: whatever waits comes back. */
	const struct sigaction catch = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};

	(void)sigaction(SIGINT, &catch, NULL);
	(void)sigaction(SIGTERM, &catch, NULL);
	(void)sigaction(SIGHUP, &catch, NULL);
	(void)sigaction(SIGPIPE, &ignore, NULL);
}

bool progress_is_stopped(void)
{
	return stop_signal != 0;
}

int progress_stop_signal(void)
{
	return stop_signal;
}
