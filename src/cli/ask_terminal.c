/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/scoped.h"

#define OPEN_MAX     64                    /* the gateway asks for no more at once */
#define ANSWER_NS    (60 * CLOCK_NS_PER_S) /* the gateway's own limit */
#define LINE_LONGEST 64

struct question {
	int64_t id, until_ns;
	char *text;
};

struct ask_terminal {
	struct ask_terminal_config config;
	int fd; /* of the terminal, while something is asked; else -1 */
	struct question open[OPEN_MAX];
	size_t n_open;
	char line[LINE_LONGEST];
	size_t len;
};

struct ask_terminal *ask_terminal_new(const struct ask_terminal_config *config)
{
	struct ask_terminal *asks = new0(struct ask_terminal);

	*asks = (struct ask_terminal){.config = *config, .fd = -1};
	return asks;
}

void ask_terminal_free(struct ask_terminal *asks)
{
	if (!asks)
		return;
	for (size_t i = 0; i < asks->n_open; i++)
		free(asks->open[i].text);
	if (asks->fd >= 0)
		close(asks->fd);
	free(asks);
}

int ask_terminal_fd(const struct ask_terminal *asks)
{
	return asks->fd;
}

static void answer(
	struct ask_terminal *asks, int64_t id, bool allow, bool always, const char *reason)
{
	scoped_str struct str body = {0};
	struct jsonw j = jsonw_to(&body);

	jsonw_object(&j);
	jsonw_kint(&j, "ask", id);
	jsonw_kbool(&j, "allow", allow);
	jsonw_kbool(&j, "always", always);
	jsonw_ktext(&j, "actor", asks->config.actor);
	if (reason)
		jsonw_ktext(&j, "reason", reason);
	jsonw_object_end(&j);
	asks->config.send(asks->config.ctx, body.p);
}

/* A terminal that is in the background belongs to others. */
static int open_terminal(void)
{
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0 && tcgetpgrp(fd) != getpgrp()) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The terminal may be raw for the command. What was typed before the question is not its answer. */
static void show(struct ask_terminal *asks)
{
	scoped_mem char *text =
		mem_printf("\r\ncloche: %s\r\ncloche: allow it? y (yes), a (always), "
			   "n (no), then Enter: ",
			asks->open[0].text);

	(void)tcflush(asks->fd, TCIFLUSH);
	(void)fdio_write_all(asks->fd, text, strlen(text)); /* gone: the read says so */
	asks->len = 0;
}

static void next(struct ask_terminal *asks)
{
	free(asks->open[0].text);
	memmove(&asks->open[0], &asks->open[1], --asks->n_open * sizeof(asks->open[0]));
	if (asks->n_open > 0) {
		show(asks);
		return;
	}
	close(asks->fd);
	asks->fd = -1;
}

/* Host and address come from inside: shown, not obeyed. */
static char *describe(const json_t *question)
{
	const char *host = json_string_value(json_object_get(question, "host"));
	const char *address = json_string_value(json_object_get(question, "address"));
	const char *protocol = json_string_value(json_object_get(question, "protocol"));
	scoped_str struct str text = {0}, place = {0};

	log_add_escaped(&place, slice_of(host ? host : address ? address : "?"));
	str_printf(&text, "the sandbox wants to reach %s port %d (%s)", place.p,
		(int)json_integer_value(json_object_get(question, "port")),
		protocol && strcmp(protocol, "udp") == 0 ? "UDP" : "TCP");
	if (json_integer_value(json_object_get(question, "pid")) > 0)
		str_printf(&text, ", asked for by its process %d",
			(int)json_integer_value(json_object_get(question, "pid")));
	return str_take(&text);
}

void ask_terminal_take(struct ask_terminal *asks, const json_t *question)
{
	int64_t id = json_integer_value(json_object_get(question, "ask"));

	if (asks->fd < 0)
		asks->fd = open_terminal();
	if (asks->fd < 0 || asks->n_open == OPEN_MAX) {
		answer(asks, id, false, false,
			asks->fd < 0 ? "no terminal to ask at" : "too many questions at once");
		return;
	}
	asks->open[asks->n_open++] = (struct question){
		.id = id, .until_ns = clock_mono_ns() + ANSWER_NS, .text = describe(question)};
	if (asks->n_open == 1)
		show(asks);
}

int ask_terminal_wait_ms(const struct ask_terminal *asks)
{
	int64_t left_ns = asks->n_open ? asks->open[0].until_ns - clock_mono_ns() : 0;

	if (asks->n_open == 0)
		return -1;
	return left_ns <= 0 ? 0 : (int)(left_ns / CLOCK_NS_PER_MS) + 1;
}

static bool is_answer(const struct ask_terminal *asks, const char *letter, const char *word)
{
	return strcasecmp(asks->line, letter) == 0 || strcasecmp(asks->line, word) == 0;
}

/* Nothing is a no; what is no answer is asked again. */
static void take_line(struct ask_terminal *asks)
{
	bool always, allow;

	asks->line[asks->len] = '\0';
	always = is_answer(asks, "a", "always");
	allow = always || is_answer(asks, "y", "yes");
	(void)fdio_write_all(asks->fd, "\r\n", 2);
	if (!allow && asks->len > 0 && !is_answer(asks, "n", "no")) {
		show(asks);
		return;
	}
	answer(asks, asks->open[0].id, allow, always, NULL);
	next(asks);
}

/* Keys are shown by us where the terminal is raw. */
static void echo(const struct ask_terminal *asks, const char *text)
{
	struct termios how;

	if (tcgetattr(asks->fd, &how) == 0 && !(how.c_lflag & ECHO))
		(void)fdio_write_all(asks->fd, text, strlen(text));
}

static void take_key(struct ask_terminal *asks, char c)
{
	if (c == '\r' || c == '\n') {
		take_line(asks);
	} else if (c == 3 || c == 4 || c == 27) { /* ctrl-c, ctrl-d, escape */
		asks->len = 0;
		take_line(asks);
	} else if (c == 8 || c == 127) {
		if (asks->len > 0)
			echo(asks, "\b \b");
		asks->len -= asks->len > 0;
	} else if (asks->len + 1 < sizeof(asks->line) && c >= 0x20) {
		asks->line[asks->len++] = c;
		echo(asks, (char[]){c, '\0'});
	}
}

static void give_up(struct ask_terminal *asks, const char *reason)
{
	while (asks->n_open > 0) {
		answer(asks, asks->open[asks->n_open - 1].id, false, false, reason);
		free(asks->open[--asks->n_open].text);
	}
	close(asks->fd);
	asks->fd = -1;
}

/* Read a byte at a time: what stands behind the answer is the command's. */
void ask_terminal_work(struct ask_terminal *asks, bool is_readable)
{
	static const char late[] = "\r\ncloche: no answer within 60 seconds: refused\r\n";
	ssize_t n;
	char c;

	if (asks->n_open == 0)
		return;
	if (ask_terminal_wait_ms(asks) == 0) {
		(void)fdio_write_all(asks->fd, late, sizeof(late) - 1);
		next(asks);
		return;
	}
	if (!is_readable)
		return;
	n = read(asks->fd, &c, 1);
	if (n == 1)
		take_key(asks, c);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		give_up(asks, "the terminal is gone");
}
