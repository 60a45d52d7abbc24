/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a record that anybody may have written, through every view: what comes out is JSON, and text without
 * control characters. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "event/event_json.h"
#include "report/har.h"
#include "report/summary.h"
#include "view/exec_log.h"
#include "view/network_table.h"
#include "view/timeline.h"

#define LINES_MAX 200

struct views {
	struct summary *summary; /* holds the tree, commands, files and hosts */
	struct timeline *timeline;
	struct network_table *network;
	struct exec_log *log;
	struct har *har;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_line(struct views *views, struct slice text)
{
	struct event_line *line = NULL;
	const struct event *ev;

	if (event_json_read(text, &line, NULL) == 0) {
		ev = event_json_get(line);
		summary_add(views->summary, ev);
		timeline_add(views->timeline, ev);
		network_table_add(views->network, ev);
		exec_log_add(views->log, ev);
		har_add(views->har, ev, NULL);
	}
	event_line_free(line);
}

static void check_json(struct str *out)
{
	json_t *root = json_loadb(out->p, out->len, JSON_ALLOW_NUL, NULL);

	assert(root);
	json_decref(root);
	str_reset(out);
}

static void check_text(struct str *out)
{
	for (size_t i = 0; i < out->len; i++)
		assert(out->p[i] == '\n' || (unsigned char)out->p[i] >= 0x20);
	str_reset(out);
}

static void check_all(struct views *views)
{
	const struct view_style style = {.columns = 80};
	scoped_str struct str out = {0};

	summary_json(views->summary, &out);
	check_json(&out);
	timeline_json(views->timeline, &out);
	check_json(&out);
	network_table_json(views->network, &out);
	check_json(&out);
	exec_log_json(views->log, &out);
	check_json(&out);
	har_json(views->har, &out);
	check_json(&out);
	summary_text(views->summary, &style, &out);
	check_text(&out);
	timeline_text(views->timeline, &style, &out);
	check_text(&out);
	network_table_text(views->network, &style, &out);
	check_text(&out);
	exec_log_text(views->log, &style, &out);
	check_text(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct view_filter filter = {0};
	const struct summary_facts facts = {.id = "sb_fuzz", .pending = -1};
	struct views views = {.summary = summary_new(&facts),
		.timeline = timeline_new(&filter),
		.network = network_table_new(&filter),
		.log = exec_log_new(&filter),
		.har = har_new(NULL, NULL)};
	struct slice rest = {.p = (const char *)data, .len = size};

	for (int n = 0; rest.len && n < LINES_MAX; n++) {
		const char *end = memchr(rest.p, '\n', rest.len);
		size_t len = end ? (size_t)(end - rest.p) : rest.len;

		add_line(&views, (struct slice){.p = rest.p, .len = len});
		len += end != NULL;
		rest = (struct slice){.p = rest.p + len, .len = rest.len - len};
	}
	check_all(&views);
	summary_free(views.summary);
	timeline_free(views.timeline);
	network_table_free(views.network);
	exec_log_free(views.log);
	har_free(views.har);
	return 0;
}
