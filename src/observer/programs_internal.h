/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of programs share: pins in its folder, bytes of its lock file. */
#ifndef OBSERVER_PROGRAMS_INTERNAL_H
#define OBSERVER_PROGRAMS_INTERNAL_H

#include <limits.h>
#include <sys/types.h>

#include "observer/programs.h"

#define PROGRAMS_N 4 /* that are attached */
extern const char *const programs_names[PROGRAMS_N];

/* Attaches those that are not, each once; detaches all. For whoever holds the lock. */
int programs_attach(const struct programs *programs, struct err *err);
void programs_detach(const struct programs *programs);

int programs_pin_path(const struct programs *programs, const char *name, char path[PATH_MAX]);
int programs_pin_get(const struct programs *programs, const char *name); /* a descriptor; -ENOENT */
int programs_pin_put(const struct programs *programs, const char *name, int fd, struct err *err);
void programs_pin_remove(const struct programs *programs, const char *name);
void programs_pin_remove_dir(const char *dir); /* with all that is in it */

int programs_slot_take(struct programs *programs, struct err *err);
void programs_slot_unmap(struct programs *programs);
int programs_slot_lock(int lock_fd, off_t slot, short type); /* F_WRLCK, F_UNLCK; does not wait */
bool programs_slot_has_users(int lock_fd);                   /* others than us */

#endif
