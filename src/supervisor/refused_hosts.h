/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts were refused to each exec so far: its row names them. */
#ifndef SUPERVISOR_REFUSED_HOSTS_H
#define SUPERVISOR_REFUSED_HOSTS_H

#include "event/event.h"
#include "util/scoped.h"

#define REFUSED_HOSTS_MAX 100U /* told of one exec */

struct refused_hosts;

struct refused_hosts *refused_hosts_new(void);
void refused_hosts_free(struct refused_hosts *hosts);
SCOPED_TYPE(refused_hosts)

/* Notes whom an event says was refused: each host once, shadowed refusals not at all. */
void refused_hosts_add(struct refused_hosts *hosts, const struct event *ev);
/* Those of one exec, good until the next call of any of these; none where there are none. */
struct event_list refused_hosts_of(const struct refused_hosts *hosts, struct slice exec);
void refused_hosts_forget(struct refused_hosts *hosts, struct slice exec);

#endif
