/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image/parcel.h"
#include "util/mem.h"

void image_done(struct image *image)
{
	for (size_t i = 0; i < image->n_layers; i++)
		free(image->layers[i].blob);
	free(image->layers);
	free(image->digest);
	free(image->config);
	spec_words_done(&image->env);
	spec_words_done(&image->entrypoint);
	spec_words_done(&image->cmd);
	spec_words_done(&image->labels);
	free(image->workdir);
	free(image->user);
	*image = (struct image){0};
}

static int damaged(struct err *err)
{
	return err_set(err, -EBADMSG, "what the child that reads it says is damaged");
}

/* Text without NUL, in memory of its own. */
static char *copy(struct slice text)
{
	return memchr(text.p, '\0', text.len) ? NULL : mem_copy(text.p, text.len);
}

static int add_layer(struct image *image, struct slice text)
{
	char *blob = image->n_layers < DOCUMENT_LAYERS_MAX ? copy(text) : NULL;

	if (!blob)
		return -EBADMSG;
	image->layers = mem_grow(image->layers, image->n_layers + 1, sizeof(*image->layers));
	image->layers[image->n_layers++] = (struct image_layer){.blob = blob};
	return 0;
}

static int set_size(struct image *image, struct slice text)
{
	unsigned long long n;
	int r = parcel_count(text, &n);

	if (r < 0)
		return r;
	if (image->n_layers)
		image->layers[image->n_layers - 1].size = n;
	else
		image->config_size = n;
	return 0;
}

static int take_manifest_part(struct image *image, int type, struct slice text)
{
	switch (type) {
	case PARCEL_CONFIG:
		if (image->config)
			return -EBADMSG;
		image->config = copy(text);
		return image->config ? 0 : -EBADMSG;
	case PARCEL_LAYER:
		return add_layer(image, text);
	case PARCEL_SIZE:
		return set_size(image, text);
	default:
		return -EBADMSG;
	}
}

int image_take_manifest(struct image *image, struct slice parcels, struct err *err)
{
	struct slice text;
	int type, r;

	while ((r = parcel_next(&parcels, &type, &text)) == 1)
		if (take_manifest_part(image, type, text) < 0)
			return damaged(err);
	return r < 0 || !image->config || image->n_layers == 0 ? damaged(err) : 0;
}

static int add_word(struct spec_words *words, struct slice text)
{
	scoped_mem char *word = copy(text);

	if (!word)
		return -EBADMSG;
	spec_words_add(words, word);
	return 0;
}

static int set_text(char **text, struct slice value)
{
	free(*text);
	*text = copy(value);
	return *text ? 0 : -EBADMSG;
}

static int set_diff(struct image *image, size_t i, struct slice text)
{
	if (i >= image->n_layers || !document_is_digest(text))
		return -EBADMSG;
	memcpy(image->layers[i].diff, text.p + strlen("sha256:"), DIGEST_HEX_LEN);
	image->layers[i].diff[DIGEST_HEX_LEN] = '\0';
	return 0;
}

static int take_config_part(struct image *image, int type, struct slice text)
{
	switch (type) {
	case PARCEL_ENV:
		return add_word(&image->env, text);
	case PARCEL_ENTRYPOINT:
		return add_word(&image->entrypoint, text);
	case PARCEL_CMD:
		return add_word(&image->cmd, text);
	case PARCEL_LABEL:
		return add_word(&image->labels, text);
	case PARCEL_WORKDIR:
		return set_text(&image->workdir, text);
	case PARCEL_USER:
		return set_text(&image->user, text);
	default:
		return -EBADMSG;
	}
}

int image_take_config(struct image *image, struct slice parcels, struct err *err)
{
	size_t n_diffs = 0;
	struct slice text;
	int type, r;

	while ((r = parcel_next(&parcels, &type, &text)) == 1) {
		int one = type == PARCEL_DIFF ? set_diff(image, n_diffs++, text)
		                              : take_config_part(image, type, text);

		if (one < 0 && type == PARCEL_DIFF)
			return err_set(
				err, -EBADMSG, "its config names other layers than its manifest");
		if (one < 0)
			return damaged(err);
	}
	if (r < 0)
		return damaged(err);
	if (n_diffs != image->n_layers)
		return err_set(err, -EBADMSG, "its config names other layers than its manifest");
	return 0;
}
