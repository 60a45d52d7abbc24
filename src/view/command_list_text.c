/* SPDX-License-Identifier: Apache-2.0 */
#include "util/clock.h"
#include "util/log.h"
#include "view/command_list.h"
#include "view/program_class.h"

#define WORDS_MAX    8
#define LEFT_COLUMNS 31 /* before the command itself */

static struct slice next_word(struct slice *rest)
{
	struct slice word;

	while (rest->len && (rest->p[0] == ' ' || rest->p[0] == '\t' || rest->p[0] == '\n'))
		*rest = (struct slice){.p = rest->p + 1, .len = rest->len - 1};
	word.p = rest->p;
	for (word.len = 0; word.len < rest->len && !strchr(" \t\n;&|", rest->p[word.len]);)
		word.len++;
	*rest = (struct slice){.p = rest->p + word.len, .len = rest->len - word.len};
	return word;
}

/* The words of a string's first program, behind "cd FOLDER &&" and "A=B". Quotes stay: only names are looked for. */
static struct event_list first_program(struct slice rest, struct slice words[WORDS_MAX])
{
	struct event_list argv = {.items = words};
	struct slice word = next_word(&rest);

	while (slice_is(word, "cd") || (word.len && memchr(word.p, '=', word.len))) {
		if (slice_is(word, "cd"))
			(void)next_word(&rest); /* its folder */
		while (rest.len && strchr(" ;&\n", rest.p[0]))
			rest = (struct slice){.p = rest.p + 1, .len = rest.len - 1};
		word = next_word(&rest);
	}
	for (; word.len && argv.n < WORDS_MAX; word = next_word(&rest))
		words[argv.n++] = word;
	return argv;
}

/* Programs whose second word tells what they did. */
static bool has_verbs(struct slice name)
{
	static const char *const names[] = {"git", "pip", "pip3", "npm", "pnpm", "yarn", "cargo",
		"go", "apt", "apt-get", "docker", "uv", "poetry", "make", "kubectl", "conda",
		"bundle", "gem", "dotnet"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_is(name, names[i]))
			return true;
	return false;
}

static bool is_verb(struct slice word)
{
	return word.len > 0 && word.len < 24 && word.p[0] >= 'a' && word.p[0] <= 'z';
}

void command_list_add_label(struct str *out, const struct command *command)
{
	struct slice words[WORDS_MAX], name;
	struct event_list argv = command->argv;

	if (command->command.len)
		argv = first_program(command->command, words);
	name = argv.n ? program_class_name(&argv, (struct slice){0}) : (struct slice){0};
	if (name.len == 0)
		name = command->command.len ? command->command : slice_of("?");
	log_add_escaped(out, name.len > 40 ? (struct slice){.p = name.p, .len = 40} : name);
	if (argv.n > 1 && has_verbs(name) && is_verb(argv.items[1])) {
		str_putc(out, ' ');
		log_add_escaped(out, argv.items[1]);
	}
}

void command_list_add_line(struct str *out, const struct command *command)
{
	if (command->command.len)
		log_add_escaped(out, command->command);
	else
		view_text_add_argv(out, &command->argv);
}

static void add_right(struct str *out, const struct str *cell, size_t width)
{
	for (size_t w = view_text_width(str_slice(cell)); w < width; w++)
		str_putc(out, ' ');
	str_add(out, cell->p, cell->len);
}

static void add_status(
	struct str *out, const struct view_style *style, const struct command *command)
{
	scoped_str struct str cell = {0};

	if (command->interrupted)
		str_puts(&cell, "cut off");
	else if (command->timed_out)
		str_puts(&cell, "timeout");
	else
		view_text_add_status(&cell, command->has_ended, command->exit_code,
			command->is_signalled ? command->signal : 0);
	for (size_t w = cell.len; w < 9; w++)
		str_putc(out, ' ');
	if (command_list_is_failed(command) || command->interrupted)
		view_text_add_color(out, style, VIEW_RED, str_slice(&cell));
	else
		str_add(out, cell.p, cell.len);
}

static void add_row(
	struct str *out, const struct view_style *style, const struct command *command, bool nest)
{
	scoped_str struct str cell = {0};
	char text[CLOCK_TEXT_LEN];

	clock_format(command->started_ms, text);
	str_add(out, text + 11, 12);
	add_status(out, style, command);
	if (command->has_ended)
		clock_add_duration(&cell, command->duration_ms);
	else
		str_putc(&cell, '-');
	add_right(out, &cell, 8);
	str_puts(out, "  ");
	str_reset(&cell);
	if (nest)
		str_puts(&cell, "  ");
	command_list_add_line(&cell, command);
	view_text_add_cut(
		out, str_slice(&cell), style->columns > 50 ? style->columns - LEFT_COLUMNS : 0);
	str_putc(out, '\n');
}

void command_list_text(struct command_list *list, const struct view_style *style, struct str *out)
{
	size_t n = command_list_settle(list);

	if (n == 0) {
		str_puts(out, "no commands\n");
		return;
	}
	view_text_add_color(
		out, style, VIEW_DIM, slice_of("STARTED          EXIT    TIME  COMMAND"));
	str_putc(out, '\n');
	for (size_t i = 0; i < n; i++) {
		const struct command *command = command_list_get(list, i);

		add_row(out, style, command, command->derived);
	}
}
