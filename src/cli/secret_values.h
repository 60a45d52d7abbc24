/* SPDX-License-Identifier: Apache-2.0 */
/* Where the values of secrets come from: a file that --secret-file names, else the caller's environment. */
#ifndef CLI_SECRET_VALUES_H
#define CLI_SECRET_VALUES_H

#include "spec/spec_network.h"

/* files: "NAME=FILE". Gives every secret its value and a stand-in. No sentence shows a value. */
int secret_values_fill(struct spec_network *net, const struct spec_words *files, struct err *err);

#endif
