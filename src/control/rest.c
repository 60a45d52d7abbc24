/* SPDX-License-Identifier: Apache-2.0 */
#include "control/rest.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define REST_MAX (16u << 20)

static void format(const struct rest *rest, struct str *out)
{
	struct jsonw j = jsonw_to(out);
	scoped_str struct str spec = {0};

	spec_write(&spec, rest->spec);
	jsonw_object(&j);
	jsonw_kint(&j, "v", 1);
	jsonw_kbool(&j, "over", rest->is_over);
	jsonw_kbool(&j, "gone", rest->is_wanted_gone);
	jsonw_kint(&j, "id_base", rest->id_base);
	jsonw_kint(&j, "guest_ns", rest->guest_ns);
	if (rest->first_network)
		jsonw_ktext(&j, "first_network", rest->first_network);
	jsonw_key(&j, "spec");
	jsonw_raw(&j, str_slice(&spec));
	jsonw_object_end(&j);
	str_putc(out, '\n');
}

int rest_write(const char *dir, const struct rest *rest, struct err *err)
{
	scoped_fd int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	scoped_str struct str text = {0};
	int r;

	format(rest, &text);
	r = dirfd < 0 ? -errno : fdio_replace(dirfd, REST_NAME, text.p, text.len, 0600);
	return r < 0 ? err_set(err, r, "write '%s/" REST_NAME "': %m", dir) : 0;
}

static int fill(struct rest *rest, const json_t *root, struct err *err)
{
	scoped_mem char *spec = json_dumps(json_object_get(root, "spec"), JSON_COMPACT);
	const char *first = json_string_value(json_object_get(root, "first_network"));
	json_int_t base = json_integer_value(json_object_get(root, "id_base"));

	if (!spec || base <= 0 || base > UINT32_MAX)
		return err_set(err, -EBADMSG, "it is not one of ours");
	rest->is_over = json_is_true(json_object_get(root, "over"));
	rest->is_wanted_gone = json_is_true(json_object_get(root, "gone"));
	rest->id_base = (uint32_t)base;
	rest->guest_ns = json_integer_value(json_object_get(root, "guest_ns"));
	rest->first_network = first ? mem_dup(first) : NULL;
	return spec_read(slice_of(spec), &rest->spec, err);
}

int rest_read(const char *dir, struct rest **ret_rest, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/" REST_NAME, dir);
	scoped(rest) struct rest *rest = new0(struct rest);
	scoped_str struct str text = {0};
	json_t *root;
	int r = fdio_read_file(AT_FDCWD, path, REST_MAX, &text);

	if (r < 0)
		return err_set(err, r, "read '%s': %m", path);
	root = json_loadb(text.p ? text.p : "", text.len, JSON_REJECT_DUPLICATES, NULL);
	r = fill(rest, root, err);
	json_decref(root);
	if (r < 0)
		return err_wrap(err, r, "read '%s'", path);
	*ret_rest = take(&rest);
	return 0;
}

void rest_free(struct rest *rest)
{
	if (!rest)
		return;
	free(rest->first_network);
	spec_free(rest->spec);
	free(rest);
}
