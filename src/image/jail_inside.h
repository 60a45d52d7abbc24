/* SPDX-License-Identifier: Apache-2.0 */
/* The child's side of jail.c. */
#ifndef IMAGE_JAIL_INSIDE_H
#define IMAGE_JAIL_INSIDE_H

#include "image/jail.h"

_Noreturn void jail_inside_run(const struct jail *jail, int go_fd, int report_fd);

#endif
