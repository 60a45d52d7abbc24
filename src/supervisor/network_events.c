/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/network_events.h"

#include <errno.h>
#include <string.h>

#include "supervisor/metering.h"
#include "util/clock.h"

static bool is_gateways(enum event_kind kind)
{
	if (kind == EVENT_NET_GATEWAY || kind == EVENT_NET_RULES || kind == EVENT_NET_PROXY ||
		kind == EVENT_NET_HELD)
		return false; /* the supervisor's own to tell */
	return slice_starts(slice_of(event_kind_name(kind)), "net.") ||
	       kind == EVENT_SECRET_MISUSE || kind == EVENT_HINT || kind == EVENT_TRACE_BLIND;
}

/* What was refused is told even where the network is not to be watched. */
static bool is_wanted(const struct supervisor *sup, enum event_kind kind)
{
	return sup->spec->trace & SPEC_TRACE_NETWORK || kind == EVENT_NET_REFUSED ||
	       kind == EVENT_NET_ASKED || kind == EVENT_SECRET_MISUSE;
}

/* A time that has not come yet would be one of its own making. */
static int64_t time_of(const struct supervisor *sup, int64_t told_ns)
{
	int64_t now_ns = clock_mono_ns() - sandbox_start_ns(sup->sandbox);

	return told_ns > 0 && told_ns < now_ns ? told_ns : now_ns;
}

void network_events_take(struct supervisor *sup, const struct exec_names *names,
	const struct gateway_frame *frame, struct event_line **line)
{
	struct event ev;
	const char *exec;

	if (event_json_read(frame->rest, line, NULL) < 0)
		return;
	ev = *event_json_get(*line);
	if (!is_gateways(ev.kind))
		return;
	if (ev.kind == EVENT_NET_FLOW || ev.kind == EVENT_NET_UDP)
		metering_add_network(sup, ev.bytes_out, ev.bytes_in);
	if (!is_wanted(sup, ev.kind))
		return;
	exec = exec_names_find(names, frame->id);
	ev.exec = slice_of(exec);
	ev.guest_ns = time_of(sup, ev.guest_ns);
	ev.seq = 0;
	ev.wall_ms = 0;
	ev.sandbox = (struct slice){0};
	ev.internal = false;
	sink_emit(recorder_sink(sup->recorder), &ev);
}

static void say_lost_blobs(struct supervisor *sup, int error)
{
	struct event ev = {.kind = EVENT_TRACE_BLIND};
	scoped_str struct str reason = {0};

	str_puts(&reason, "bodies of requests, answers or messages are not kept: ");
	str_puts(&reason, error == -EDQUOT ? "there are as many of them as a record may have"
					   : strerror(-error));
	event_set(&ev, reason, str_slice(&reason));
	event_set_text(&ev, source_lost, "network");
	recorder_emit_now(sup->recorder, &ev);
}

void network_events_take_blob(
	struct supervisor *sup, const struct gateway_frame *frame, bool *has_lost)
{
	static const enum gateway_frame_type types[] = {
		[RECORD_BLOB_WHOLE] = GATEWAY_BLOB,
		[RECORD_BLOB_HEAD] = GATEWAY_BLOB_HEAD,
		[RECORD_BLOB_TAIL] = GATEWAY_BLOB_TAIL,
	};
	char hash[DIGEST_HEX_SIZE];

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		int r = frame->type == types[i] ? record_blob_put(sup->record, frame->rest,
							  (enum record_blob_part)i, hash)
		                                : 0;

		if (r == 0 || *has_lost)
			continue;
		*has_lost = true;
		say_lost_blobs(sup, r);
	}
}

void network_events_say_gateway(struct supervisor *sup, const char *what, const char *reason)
{
	struct event ev = {.kind = EVENT_NET_GATEWAY};

	event_set_text(&ev, what, what);
	event_set_text(&ev, reason, reason);
	recorder_emit_now(sup->recorder, &ev);
}
