/* SPDX-License-Identifier: Apache-2.0 */
/* How views look on a terminal. Everything from inside the sandbox goes out escaped. */
#ifndef VIEW_VIEW_TEXT_H
#define VIEW_VIEW_TEXT_H

#include <stdbool.h>

#include "event/event.h"
#include "util/str.h"

struct view_style {
	bool color;
	unsigned columns; /* longer lines are cut and end in an ellipsis; 0: never */
};

#define VIEW_RED    "31"
#define VIEW_GREEN  "32"
#define VIEW_YELLOW "33"
#define VIEW_DIM    "2"
#define VIEW_BOLD   "1"

/* Columns that text takes: characters, as none of ours is wide and tricky ones are escaped. */
size_t view_text_width(struct slice text);
/* Adds text in a color where the style wants colors. */
void view_text_add_color(
	struct str *out, const struct view_style *style, const char *color, struct slice text);
/* Adds text, which is escaped already, cut to at most width columns; 0: whole. */
void view_text_add_cut(struct str *out, struct slice text, size_t width);
/* The same, but what is kept is the end: for paths, whose end says most. */
void view_text_add_tail(struct str *out, struct slice text, size_t width);
/* Adds an argument list as one would type it: quoted where a shell needs it, escaped. */
void view_text_add_argv(struct str *out, const struct event_list *argv);
/* "0", "3", "SIGKILL", or "-" while it runs. */
void view_text_add_status(struct str *out, bool has_ended, int64_t code, int64_t signal);
/* 1204 as "1,204". */
void view_text_add_count(struct str *out, int64_t n);
/* 1258291 as "1.2 MB". */
void view_text_add_bytes(struct str *out, int64_t n);

#endif
