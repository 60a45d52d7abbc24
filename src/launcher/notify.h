/* SPDX-License-Identifier: Apache-2.0 */
/* Tells a service manager how far we are, by its protocol (sd_notify(3)): lines in a datagram to the socket that NOTIFY_SOCKET
 * names. Without one nothing is told. */
#ifndef LAUNCHER_NOTIFY_H
#define LAUNCHER_NOTIFY_H

/* Takes NOTIFY_SOCKET out of the environment: nobody whom we start is to speak for us. A descriptor; -1: there is none. */
int notify_open(void);
/* "READY=1". Who does not listen is not waited for. */
void notify_send(int fd, const char *lines);
/* "RELOADING=1", as it wants it: with the time. */
void notify_reloading(int fd);

#endif
