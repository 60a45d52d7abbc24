/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/spec_internal.h"
#include "spec/spec_parse.h"
#include "util/jsonw.h"
#include "util/mem.h"

static void write_mounts(struct jsonw *j, const struct spec *spec)
{
	jsonw_key(j, "mounts");
	jsonw_array(j);
	for (size_t i = 0; i < spec->n_mounts; i++) {
		const struct spec_mount *m = &spec->mounts[i];

		jsonw_object(j);
		jsonw_ktext(j, "host", m->host);
		jsonw_ktext(j, "guest", m->guest);
		jsonw_ktext(j, "mode", spec_mode_name(m->mode));
		if (m->internal)
			jsonw_kbool(j, "internal", true);
		if (m->profile)
			jsonw_kbool(j, "profile", true);
		spec_json_write_given(j, "folder_id", m->folder_id);
		jsonw_object_end(j);
	}
	jsonw_array_end(j);
}

static void write_lowers(struct jsonw *j, const struct spec *spec)
{
	if (spec->n_lowers == 0)
		return;
	jsonw_key(j, "lowers");
	jsonw_array(j);
	for (size_t i = 0; i < spec->n_lowers; i++) {
		jsonw_object(j);
		jsonw_ktext(j, "guest", spec->lowers[i].guest);
		jsonw_ktext(j, "dir", spec->lowers[i].dir);
		jsonw_kint(j, "base", spec->lowers[i].base);
		jsonw_object_end(j);
	}
	jsonw_array_end(j);
}

static void write_labels(struct jsonw *j, const struct spec *spec)
{
	jsonw_key(j, "labels");
	jsonw_object(j);
	for (size_t i = 0; i < spec->n_labels; i++) {
		jsonw_free_key(j, slice_of(spec->labels[i].key));
		jsonw_text(j, spec->labels[i].value);
	}
	jsonw_object_end(j);
}

static void write_trace(struct jsonw *j, const struct spec *spec)
{
	jsonw_key(j, "trace");
	jsonw_object(j);
	for (const struct spec_source *s = spec_parse_source_table; s->name; s++)
		jsonw_kbool(j, s->name, spec->trace & s->bit);
	jsonw_kint(j, "buffer_bytes", spec->buffer_bytes);
	jsonw_object_end(j);
}

/* In a record only the names: values may be anything. */
static void write_env(
	struct jsonw *j, const char *key, const struct spec_words *env, bool for_record)
{
	scoped_mem struct slice *items = new0_n(struct slice, env->n);

	for (size_t i = 0; i < env->n; i++)
		items[i] = (struct slice){.p = env->items[i],
			.len = for_record ? strcspn(env->items[i], "=") : strlen(env->items[i])};
	jsonw_klist(j, key, items, env->n);
}

static void write_image(struct jsonw *j, const struct spec *spec, bool for_record)
{
	spec_json_write_given(j, "image", spec->image);
	spec_json_write_given(j, "image_digest", spec->image_digest);
	if (spec->image_env.n)
		write_env(j, "image_env", &spec->image_env, for_record);
	if (spec->image_labels.n)
		spec_json_write_words(j, "image_labels", &spec->image_labels);
	spec_json_write_given(j, "workdir", spec->workdir);
	spec_json_write_given(j, "user", spec->user);
}

static void write_spec(struct str *out, const struct spec *spec, bool for_record)
{
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	spec_json_write_given(&j, "name", spec->name);
	spec_json_write_given(&j, "task", spec->task);
	spec_json_write_given(&j, "account", spec->account);
	spec_json_write_given(&j, "agent", spec->agent);
	spec_json_write_given(&j, "work_item", spec->work_item);
	jsonw_ktext(&j, "rootfs", spec->rootfs || spec->image ? spec->rootfs : "host");
	write_image(&j, spec, for_record);
	write_lowers(&j, spec);
	spec_json_write_given(&j, "forked_from", spec->forked_from);
	if (spec->since_ns)
		jsonw_kint(&j, "since_ns", spec->since_ns);
	write_mounts(&j, spec);
	spec_json_write_words(&j, "hide", &spec->hide);
	jsonw_key(&j, "network");
	spec_network_write(&j, &spec->network, for_record);
	write_env(&j, "env", &spec->env, for_record);
	spec_json_write_given(&j, "profile", spec->profile);
	write_labels(&j, spec);
	jsonw_kint(&j, "memory_bytes", spec->memory_bytes);
	jsonw_key(&j, "cpus");
	jsonw_real(&j, (double)spec->cpu_milli / 1000);
	jsonw_kint(&j, "pids", spec->pids_max);
	jsonw_kint(&j, "disk_bytes", spec->disk_bytes);
	write_trace(&j, spec);
	jsonw_ktext(&j, "on_loss", spec_on_loss_name(spec->on_loss));
	jsonw_kbool(&j, "record_raw", spec->record_raw);
	jsonw_ktext(&j, "durability", spec->durable ? "disk" : "process");
	jsonw_kbool(&j, "keep", spec->keep);
	jsonw_kbool(&j, "full", spec->full);
	jsonw_kint(&j, "owner_uid", spec->owner_uid);
	jsonw_kint(&j, "owner_gid", spec->owner_gid);
	jsonw_object_end(&j);
}

void spec_write(struct str *out, const struct spec *spec)
{
	write_spec(out, spec, false);
}

void spec_write_record(struct str *out, const struct spec *spec)
{
	write_spec(out, spec, true);
}
