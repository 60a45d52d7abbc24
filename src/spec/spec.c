/* SPDX-License-Identifier: Apache-2.0 */
/* Life of a spec, and its lists. */
#include "spec/spec.h"

#include "util/mem.h"

#define BUFFER_DEFAULT (64LL << 20)

/* Where people keep what opens other doors. There, but denied and recorded. */
static const char *const hidden_by_default[] = {
	".env*",
	".ssh",
	".aws",
	".azure",
	".gnupg",
	".kube",
	".netrc",
	".pgpass",
	".git-credentials",
};

struct spec *spec_new(void)
{
	struct spec *spec = new0(struct spec);

	spec->buffer_bytes = BUFFER_DEFAULT;
	spec_network_init(&spec->network);
	for (size_t i = 0; i < sizeof(hidden_by_default) / sizeof(hidden_by_default[0]); i++)
		spec_words_add(&spec->hide, hidden_by_default[i]);
	return spec;
}

void spec_free(struct spec *spec)
{
	if (!spec)
		return;
	free(spec->name);
	free(spec->task);
	free(spec->account);
	free(spec->agent);
	free(spec->work_item);
	free(spec->rootfs);
	for (size_t i = 0; i < spec->n_mounts; i++) {
		free(spec->mounts[i].host);
		free(spec->mounts[i].guest);
		free(spec->mounts[i].folder_id);
	}
	free(spec->mounts);
	free(spec->image);
	free(spec->image_digest);
	spec_words_done(&spec->image_env);
	spec_words_done(&spec->image_labels);
	free(spec->workdir);
	free(spec->user);
	free(spec->forked_from);
	for (size_t i = 0; i < spec->n_lowers; i++) {
		free(spec->lowers[i].guest);
		free(spec->lowers[i].dir);
	}
	free(spec->lowers);
	spec_network_done(&spec->network);
	spec_words_done(&spec->env);
	free(spec->profile);
	spec_words_done(&spec->hide);
	for (size_t i = 0; i < spec->n_labels; i++) {
		free(spec->labels[i].key);
		free(spec->labels[i].value);
	}
	free(spec->labels);
	free(spec);
}

void spec_add_mount(struct spec *spec, const char *host, const char *guest,
	enum spec_mount_mode mode, bool internal)
{
	spec->mounts = mem_grow(spec->mounts, spec->n_mounts + 1, sizeof(struct spec_mount));
	spec->mounts[spec->n_mounts++] = (struct spec_mount){
		.host = mem_dup(host),
		.guest = mem_dup(guest),
		.mode = mode,
		.internal = internal,
	};
}

void spec_add_lower(struct spec *spec, const char *guest, const char *dir, uint32_t base)
{
	spec->lowers = mem_grow(spec->lowers, spec->n_lowers + 1, sizeof(struct spec_lower));
	spec->lowers[spec->n_lowers++] =
		(struct spec_lower){.guest = mem_dup(guest), .dir = mem_dup(dir), .base = base};
}

void spec_add_label(struct spec *spec, const char *key, const char *value)
{
	for (size_t i = 0; i < spec->n_labels; i++) {
		if (strcmp(spec->labels[i].key, key) != 0)
			continue;
		free(spec->labels[i].value);
		spec->labels[i].value = mem_dup(value);
		return;
	}
	spec->labels = mem_grow(spec->labels, spec->n_labels + 1, sizeof(struct spec_pair));
	spec->labels[spec->n_labels++] =
		(struct spec_pair){.key = mem_dup(key), .value = mem_dup(value)};
}

const char *spec_mode_name(enum spec_mount_mode mode)
{
	switch (mode) {
	case SPEC_MOUNT_RO:
		return "ro";
	case SPEC_MOUNT_RW:
		return "rw";
	case SPEC_MOUNT_COW:
		return "cow";
	}
	return "?";
}

const char *spec_on_loss_name(enum spec_on_loss on_loss)
{
	switch (on_loss) {
	case SPEC_ON_LOSS_FREEZE:
		return "freeze";
	case SPEC_ON_LOSS_STOP:
		return "stop";
	case SPEC_ON_LOSS_CONTINUE:
		return "continue";
	}
	return "?";
}
