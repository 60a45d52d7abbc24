/* SPDX-License-Identifier: Apache-2.0 */
/* Where the values of secrets come from: a file that --secret-file names, else the caller's environment; or, where somebody
 * else's words are carried out, what that one hands over and nothing else. */
#ifndef CLI_SECRET_VALUES_H
#define CLI_SECRET_VALUES_H

#include "spec/spec_network.h"

struct secret_sources {
	const struct spec_words *files; /* "NAME=FILE" */
	/* A file as spec_hidden_write() writes it: values, and the upstream proxy's credentials. Where it is named the
	 * environment is not asked. NULL: none */
	const char *hidden;
};

/* Gives every secret its value and a stand-in. No sentence shows a value. */
int secret_values_fill(
	struct spec_network *net, const struct secret_sources *sources, struct err *err);
/* Gives them their values again; stand-ins stay, since files inside may hold them. */
int secret_values_again(
	struct spec_network *net, const struct secret_sources *sources, struct err *err);
/* Adds what a user wrote behind --secret-file. */
int secret_values_add_file(struct spec_words *files, const char *text, struct err *err);

#endif
