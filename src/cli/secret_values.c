/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/secret_values.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "spec/spec_network_parse.h"
#include "spec/spec_stand_in.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/scoped.h"

#define HIDDEN_MAX (1u << 20)

/* The file's text without the line end that editors leave. */
static int read_value(const char *path, char **ret_value, struct err *err)
{
	scoped_secret struct str text = {0};
	int r = fdio_read_file(AT_FDCWD, path, SPEC_STAND_IN_MAX + 2, &text);

	if (r == -EFBIG)
		return err_set(err, r, "'%s' is longer than %d bytes, a header's limit", path,
			SPEC_STAND_IN_MAX);
	if (r < 0)
		return err_set(err, r, "'%s': %m", path);
	if (text.len && text.p[text.len - 1] == '\n')
		text.len--;
	if (text.len && text.p[text.len - 1] == '\r')
		text.len--;
	if (text.len == 0 || memchr(text.p, '\0', text.len))
		return err_set(err, -EINVAL, "'%s' holds no value", path);
	*ret_value = mem_copy(text.p, text.len);
	return 0;
}

static int take_files(struct spec_network *net, const struct spec_words *files, struct err *err)
{
	for (size_t i = 0; i < files->n; i++) {
		const char *eq = strchr(files->items[i], '=');
		scoped_mem char *name = mem_copy(files->items[i], (size_t)(eq - files->items[i]));
		struct spec_secret *secret = spec_network_secret(net, name);
		int r;

		if (!secret)
			return err_set(err, -EINVAL,
				"--secret-file names '%s', but there is no --secret %s@HOST", name,
				name);
		if (secret->value)
			return err_set(err, -EEXIST, "--secret-file names '%s' twice", name);
		r = read_value(eq + 1, &secret->value, err);
		if (r < 0)
			return err_wrap(err, r, "secret %s", name);
	}
	return 0;
}

/* Out of the environment too: programs that we start inherit it, and some of them live long. */
static char *take_variable(const char *name)
{
	char *here = getenv(name), *value;

	if (!here || !*here)
		return NULL;
	value = mem_dup(here);
	explicit_bzero(here, strlen(here));
	(void)unsetenv(name); /* cannot fail with a name that was found */
	return value;
}

static int make_stand_in(struct spec_secret *secret, struct err *err)
{
	scoped_str struct str text = {0};
	int r = spec_stand_in_make(secret->value, &text, err);

	if (r < 0)
		return err_wrap(err, r, "secret %s", secret->name);
	free(secret->stand_in);
	secret->stand_in = str_take(&text);
	return 0;
}

static int take_hidden(struct spec_network *net, const char *path, struct err *err)
{
	scoped_secret struct str text = {0};
	int r = fdio_read_file(AT_FDCWD, path, HIDDEN_MAX, &text);

	if (r < 0)
		return err_set(err, r, "'%s': %m", path);
	return spec_hidden_read(net, str_slice(&text), err);
}

static int say_missing(const struct spec_secret *secret, bool has_hidden, struct err *err)
{
	if (has_hidden)
		return err_set(
			err, -ENOENT, "secret %s has no value: none was handed over", secret->name);
	return err_set(err, -ENOENT,
		"secret %s has no value: the environment has no variable %s (sudo "
		"drops it: use `sudo --preserve-env=%s`), and no --secret-file "
		"names it",
		secret->name, secret->name, secret->name);
}

static int fill(
	struct spec_network *net, const struct secret_sources *sources, bool again, struct err *err)
{
	int r = take_files(net, sources->files, err);

	if (r == 0 && sources->hidden)
		r = take_hidden(net, sources->hidden, err);
	for (size_t i = 0; r == 0 && i < net->n_secrets; i++) {
		struct spec_secret *secret = &net->secrets[i];

		if (!secret->value && !sources->hidden)
			secret->value = take_variable(secret->name);
		if (!secret->value)
			return say_missing(secret, sources->hidden, err);
		if (!again || !secret->stand_in)
			r = make_stand_in(secret, err);
	}
	return r;
}

int secret_values_fill(
	struct spec_network *net, const struct secret_sources *sources, struct err *err)
{
	return fill(net, sources, false, err);
}

int secret_values_again(
	struct spec_network *net, const struct secret_sources *sources, struct err *err)
{
	return fill(net, sources, true, err);
}

int secret_values_add_file(struct spec_words *files, const char *text, struct err *err)
{
	const char *eq = strchr(text, '=');

	if (!eq || eq == text || !eq[1])
		return err_set(err, -EINVAL, "want NAME=FILE");
	spec_words_add(files, text);
	return 0;
}
