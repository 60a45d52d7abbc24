/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors whose closing may wait for the kernel: a mount that is attached nowhere is taken apart by its
 * last close, which waits until no processor can still see it. That is a large part of what making a box
 * costs on a busy host, and nobody needs to wait for it. */
#ifndef SANDBOX_LATE_H
#define SANDBOX_LATE_H

void late_close(int fd); /* takes fd over; it stays open until late_run() */
void late_run(void);     /* closes all of them in a thread of its own; without one, here */

#endif
