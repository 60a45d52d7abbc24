/* SPDX-License-Identifier: Apache-2.0 */
/* --image: has cloche-image find or make its layers, and takes over what the image says of how it is run. */
#ifndef CLI_IMAGE_CHOICE_H
#define CLI_IMAGE_CHOICE_H

#include <stdbool.h>

#include "cli/cli.h"
#include "spec/spec.h"

struct image_choice {
	bool pull;                                 /* --pull */
	const char *entrypoint;                    /* --entrypoint, borrowed; NULL: the image's */
	struct spec_words own_entrypoint, own_cmd; /* of the image */
	int lock_fd; /* while held, no layer is removed that nobody uses yet; -1 */
};

void image_choice_init(struct image_choice *choice);
void image_choice_done(struct image_choice *choice);

/* Fills spec (lowers, image_*, and workdir and user where it names none) from the image that it names; nothing where
 * it names none. Layers stay until image_choice_release(), which is called once a sandbox uses them. */
int image_choice_resolve(
	struct image_choice *choice, struct spec *spec, const struct cli *cli, struct err *err);
void image_choice_release(struct image_choice *choice);

/* Removes what was left of layers whose making was cut off. */
int image_choice_clean(const struct cli *cli, struct err *err);

/* The command as docker makes it: the entrypoint, then words or, where there are none, the image's own. -EINVAL where
 * that is nothing. Without an image the words alone. */
int image_choice_command(const struct image_choice *choice, char **words, size_t n_words,
	struct spec_words *ret_argv, struct err *err);

#endif
