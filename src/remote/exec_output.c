/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/exec_output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/base64.h"
#include "util/fdio.h"
#include "util/log.h"
#include "util/str.h"

static const char *const names[] = {NULL, "stdout", "stderr"};

/* A reader that went away, or a descriptor that was closed for us, wanted no more. */
static bool is_loss(int error)
{
	return error != 0 && error != -EPIPE && error != -EBADF;
}

static int pass_on(struct exec_output *output, int fd, struct slice bytes)
{
	int r;

	output->n_passed[fd] += bytes.len;
	if (output->errors[fd])
		return 0;
	r = fdio_write_all(fd, bytes.p, bytes.len);
	output->errors[fd] = r < 0 ? r : 0;
	if (is_loss(r))
		log_warn("%s cannot be written, output is lost: %s", names[fd], strerror(-r));
	return r == -EPIPE ? r : 0;
}

/* A text, or where it is none its bytes beside it. NULL is nothing. */
static int read_bytes(const json_t *object, const char *key, const char *key_b64, struct str *out)
{
	const json_t *text = json_object_get(object, key), *b64 = json_object_get(object, key_b64);

	if (json_is_string(b64))
		return base64_decode(
			(struct slice){json_string_value(b64), json_string_length(b64)}, out);
	if (!json_is_string(text))
		return -EBADMSG;
	str_add(out, json_string_value(text), json_string_length(text));
	return 0;
}

int exec_output_take(struct exec_output *output, int fd, struct slice json)
{
	json_t *data = json_loadb(json.p, json.len, JSON_ALLOW_NUL, NULL);
	scoped_str struct str bytes = {0};
	int r = read_bytes(data, "data", "data_b64", &bytes);

	json_decref(data);
	if (r < 0)
		return -EBADMSG;
	return pass_on(output, fd, str_slice(&bytes));
}

static void complete(struct exec_output *output, int fd, const json_t *row, const char *key,
	const char *key_b64, const char *key_bytes)
{
	const json_t *total = json_object_get(row, key_bytes);
	uint64_t n = json_is_integer(total) ? (uint64_t)json_integer_value(total) : 0,
		 passed = output->n_passed[fd];
	scoped_str struct str all = {0};

	if (n <= passed)
		return;
	if (read_bytes(row, key, key_b64, &all) == 0 && all.len == n)
		(void)pass_on(output, fd, (struct slice){all.p + passed, all.len - passed});
	else
		log_warn("%llu bytes of %s were lost with the connection: the exec log has their "
			 "begin and end (`cloche log --json`)",
			(unsigned long long)(n - passed), names[fd]);
}

void exec_output_complete(struct exec_output *output, const json_t *row)
{
	complete(output, STDOUT_FILENO, row, "stdout", "stdout_b64", "stdout_bytes");
	complete(output, STDERR_FILENO, row, "stderr", "stderr_b64", "stderr_bytes");
}

bool exec_output_is_lost(const struct exec_output *output)
{
	return is_loss(output->errors[STDOUT_FILENO]) || is_loss(output->errors[STDERR_FILENO]);
}
