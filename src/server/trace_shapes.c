/* SPDX-License-Identifier: Apache-2.0 */
#include "server/trace_shapes.h"

#include <string.h>

#include "spec/spec.h"
#include "view/command_list.h"
#include "view/file_table.h"
#include "view/network_table.h"
#include "view/process_tree.h"
#include "view/timeline.h"

#define SHAPE(view) \
	static void *shape_##view##_new(const struct view_filter *filter) \
	{ \
		return view##_new(filter); \
	} \
	static void shape_##view##_free(void *v) \
	{ \
		view##_free(v); \
	} \
	static void shape_##view##_add(void *v, const struct event *ev) \
	{ \
		view##_add(v, ev); \
	} \
	static void shape_##view##_json(void *v, struct str *out) \
	{ \
		view##_json(v, out); \
	}
#define SHAPE_ROW(view) \
	shape_##view##_new, shape_##view##_free, shape_##view##_add, shape_##view##_json

SHAPE(process_tree)
SHAPE(file_table)
SHAPE(network_table)
SHAPE(command_list)
SHAPE(timeline)

const struct trace_shape trace_shapes[TRACE_SHAPES_N] = {
	{"processes", SPEC_TRACE_PROCESSES, SHAPE_ROW(process_tree)},
	{"files", SPEC_TRACE_FILES | SPEC_TRACE_MOUNTS, SHAPE_ROW(file_table)},
	{"network", SPEC_TRACE_NETWORK, SHAPE_ROW(network_table)},
	{"commands", 0, SHAPE_ROW(command_list)},
	{"timeline", 0, SHAPE_ROW(timeline)},
};

const struct trace_shape *trace_shapes_find(const char *name)
{
	for (size_t i = 0; i < TRACE_SHAPES_N; i++)
		if (strcmp(trace_shapes[i].name, name) == 0)
			return &trace_shapes[i];
	return NULL;
}
