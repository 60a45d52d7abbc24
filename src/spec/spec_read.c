/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "spec/spec_internal.h"
#include "spec/spec_parse.h"

#define MOUNTS_MAX 256
#define LABELS_MAX 64

struct mount_text {
	char *host, *guest, *mode, *folder_id;
	bool internal, profile;
};

static const struct spec_json_key mount_keys[] = {
	{"host", SPEC_JSON_TEXT, offsetof(struct mount_text, host)},
	{"guest", SPEC_JSON_TEXT, offsetof(struct mount_text, guest)},
	{"mode", SPEC_JSON_TEXT, offsetof(struct mount_text, mode)},
	{"internal", SPEC_JSON_BOOL, offsetof(struct mount_text, internal)},
	{"profile", SPEC_JSON_BOOL, offsetof(struct mount_text, profile)},
	{"folder_id", SPEC_JSON_TEXT, offsetof(struct mount_text, folder_id)},
	{NULL},
};

static void mount_text_done(struct mount_text *m)
{
	free(m->host);
	free(m->guest);
	free(m->mode);
	free(m->folder_id);
}

static int read_mount(struct spec *spec, const json_t *v, struct err *err)
{
	__attribute__((cleanup(mount_text_done))) struct mount_text m = {0};
	enum spec_mount_mode mode;
	int r;

	r = spec_json_read(&m, mount_keys, v, err);
	if (r < 0)
		return r;
	if (!m.host || !m.guest || !m.mode)
		return err_set(err, -EINVAL, "want host, guest and mode");
	r = spec_parse_mode(m.mode, &mode, err);
	if (r < 0)
		return r;
	spec_add_mount(spec, m.host, m.guest, mode, m.internal);
	spec->mounts[spec->n_mounts - 1].profile = m.profile;
	spec->mounts[spec->n_mounts - 1].folder_id = take(&m.folder_id);
	return 0;
}

static int read_mounts(void *target, const json_t *v, struct err *err)
{
	if (!json_is_array(v) || json_array_size(v) > MOUNTS_MAX)
		return err_set(err, -EINVAL, "'mounts' must be a list of at most %d", MOUNTS_MAX);
	for (size_t i = 0; i < json_array_size(v); i++) {
		int r = read_mount(target, json_array_get(v, i), err);

		if (r < 0)
			return err_wrap(err, r, "mount %zu", i + 1);
	}
	return 0;
}

static const struct spec_json_key lower_keys[] = {
	{"guest", SPEC_JSON_TEXT, offsetof(struct spec_lower, guest)},
	{"dir", SPEC_JSON_TEXT, offsetof(struct spec_lower, dir)},
	{"base", SPEC_JSON_U32, offsetof(struct spec_lower, base)},
	{NULL},
};

static void lower_done(struct spec_lower *lower)
{
	free(lower->guest);
	free(lower->dir);
}

static int read_lower(struct spec *spec, const json_t *v, struct err *err)
{
	__attribute__((cleanup(lower_done))) struct spec_lower l = {0};
	int r = spec_json_read(&l, lower_keys, v, err);

	if (r < 0)
		return r;
	if (!l.guest || !l.dir || l.guest[0] != '/' || l.dir[0] != '/')
		return err_set(err, -EINVAL, "want guest and dir, both absolute");
	spec_add_lower(spec, l.guest, l.dir, l.base);
	return 0;
}

static int read_lowers(void *target, const json_t *v, struct err *err)
{
	if (!json_is_array(v) || json_array_size(v) > SPEC_LOWERS_MAX)
		return err_set(
			err, -EINVAL, "'lowers' must be a list of at most %d", SPEC_LOWERS_MAX);
	for (size_t i = 0; i < json_array_size(v); i++) {
		int r = read_lower(target, json_array_get(v, i), err);

		if (r < 0)
			return err_wrap(err, r, "lower layer %zu", i + 1);
	}
	return 0;
}

static int read_labels(void *target, const json_t *v, struct err *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(v) || json_object_size(v) > LABELS_MAX)
		return err_set(
			err, -EINVAL, "'labels' must be an object of at most %d", LABELS_MAX);
	json_object_foreach((json_t *)v, key, value)
	{
		if (!json_is_string(value))
			return err_set(err, -EINVAL, "label '%s' must be text", key);
		spec_add_label(target, key, json_string_value(value));
	}
	return 0;
}

static int read_cpus(void *target, const json_t *v, struct err *err)
{
	struct spec *spec = target;
	double cpus = json_number_value(v);

	if (!json_is_number(v) || cpus < 0 || cpus > 4096)
		return err_set(err, -EINVAL, "'cpus' must be a number such as 1.5");
	spec->cpu_milli = (int64_t)(cpus * 1000 + 0.5);
	return 0;
}

static int read_source(struct spec *spec, const char *name, const json_t *v, struct err *err)
{
	if (!json_is_boolean(v))
		return err_set(err, -EINVAL, "'trace.%s' must be true or false", name);
	for (const struct spec_source *s = spec_parse_source_table; s->name; s++)
		if (strcmp(s->name, name) == 0) {
			spec->trace |= json_is_true(v) ? s->bit : 0;
			return 0;
		}
	return err_set(err, -EINVAL, "there is no key 'trace.%s'", name);
}

static int read_trace(void *target, const json_t *v, struct err *err)
{
	struct spec *spec = target;
	const char *name;
	json_t *value;

	spec->trace = json_is_true(v) ? SPEC_TRACE_ALL : 0;
	if (json_is_boolean(v))
		return 0;
	if (!json_is_object(v))
		return err_set(err, -EINVAL, "'trace' must be true, false or an object");
	json_object_foreach((json_t *)v, name, value)
	{
		int r = 0;

		if (strcmp(name, "buffer_bytes") != 0)
			r = read_source(spec, name, value, err);
		else if (!json_is_integer(value) || json_integer_value(value) < 0)
			r = err_set(err, -EINVAL, "'trace.buffer_bytes' must be a whole number");
		else
			spec->buffer_bytes = json_integer_value(value);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_on_loss(void *target, const json_t *v, struct err *err)
{
	struct spec *spec = target;
	int r = spec_parse_on_loss(
		json_is_string(v) ? json_string_value(v) : "", &spec->on_loss, err);

	return r < 0 ? err_wrap(err, r, "on_loss") : 0;
}

static int read_durability(void *target, const json_t *v, struct err *err)
{
	struct spec *spec = target;
	int r = spec_parse_durability(
		json_is_string(v) ? json_string_value(v) : "", &spec->durable, err);

	return r < 0 ? err_wrap(err, r, "durability") : 0;
}

static int read_network(void *target, const json_t *v, struct err *err)
{
	struct spec *spec = target;

	return spec_network_read_json(&spec->network, v, err);
}

_Static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t),
	"ids are read as 32 bits");

static const struct spec_json_key spec_keys[] = {
	{"name", SPEC_JSON_TEXT, offsetof(struct spec, name)},
	{"task", SPEC_JSON_TEXT, offsetof(struct spec, task)},
	{"account", SPEC_JSON_TEXT, offsetof(struct spec, account)},
	{"agent", SPEC_JSON_TEXT, offsetof(struct spec, agent)},
	{"work_item", SPEC_JSON_TEXT, offsetof(struct spec, work_item)},
	{"rootfs", SPEC_JSON_TEXT, offsetof(struct spec, rootfs)},
	{"image", SPEC_JSON_TEXT, offsetof(struct spec, image)},
	{"image_digest", SPEC_JSON_TEXT, offsetof(struct spec, image_digest)},
	{"image_env", SPEC_JSON_WORDS, offsetof(struct spec, image_env)},
	{"image_labels", SPEC_JSON_WORDS, offsetof(struct spec, image_labels)},
	{"workdir", SPEC_JSON_TEXT, offsetof(struct spec, workdir)},
	{"user", SPEC_JSON_TEXT, offsetof(struct spec, user)},
	{"lowers", SPEC_JSON_CALL, .read = read_lowers},
	{"forked_from", SPEC_JSON_TEXT, offsetof(struct spec, forked_from)},
	{"since_ns", SPEC_JSON_COUNT, offsetof(struct spec, since_ns)},
	{"mounts", SPEC_JSON_CALL, .read = read_mounts},
	{"hide", SPEC_JSON_WORDS, offsetof(struct spec, hide)},
	{"network", SPEC_JSON_CALL, .read = read_network},
	{"env", SPEC_JSON_WORDS, offsetof(struct spec, env)},
	{"profile", SPEC_JSON_TEXT, offsetof(struct spec, profile)},
	{"labels", SPEC_JSON_CALL, .read = read_labels},
	{"memory_bytes", SPEC_JSON_SIZE, offsetof(struct spec, memory_bytes)},
	{"cpus", SPEC_JSON_CALL, .read = read_cpus},
	{"pids", SPEC_JSON_COUNT, offsetof(struct spec, pids_max)},
	{"disk_bytes", SPEC_JSON_SIZE, offsetof(struct spec, disk_bytes)},
	{"trace", SPEC_JSON_CALL, .read = read_trace},
	{"on_loss", SPEC_JSON_CALL, .read = read_on_loss},
	{"record_raw", SPEC_JSON_BOOL, offsetof(struct spec, record_raw)},
	{"durability", SPEC_JSON_CALL, .read = read_durability},
	{"keep", SPEC_JSON_BOOL, offsetof(struct spec, keep)},
	{"full", SPEC_JSON_BOOL, offsetof(struct spec, full)},
	{"owner_uid", SPEC_JSON_U32, offsetof(struct spec, owner_uid)},
	{"owner_gid", SPEC_JSON_U32, offsetof(struct spec, owner_gid)},
	{NULL},
};

/* What no user says: found out by the caller, and told by our programs to each other only. */
static int refuse_own_keys(const json_t *root, struct err *err)
{
	static const char *const own[] = {
		"lowers", "forked_from", "since_ns", "image_digest", "image_env", "image_labels"};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (json_object_get(root, own[i]))
			return err_set(err, -EINVAL, "there is no key '%s'", own[i]);
	return 0;
}

static int apply(struct spec *spec, struct slice json, bool is_wire, struct err *err)
{
	scoped_json json_t *root = NULL;
	int r;

	r = spec_json_parse(json, &root, err);
	if (r == 0 && !is_wire)
		r = refuse_own_keys(root, err);
	if (r == 0)
		r = spec_json_read(spec, spec_keys, root, err);
	if (r < 0)
		return err_wrap(err, r, "spec");
	if (spec->rootfs && strcmp(spec->rootfs, "host") == 0)
		free(take(&spec->rootfs));
	return 0;
}

int spec_apply(struct spec *spec, struct slice json, struct err *err)
{
	return apply(spec, json, false, err);
}

int spec_read(struct slice json, struct spec **ret_spec, struct err *err)
{
	scoped(spec) struct spec *spec = spec_new();
	int r;

	r = apply(spec, json, true, err);
	if (r < 0)
		return r;
	*ret_spec = take(&spec);
	return 0;
}
