/* SPDX-License-Identifier: Apache-2.0 */
/* Previews as a server shows them: on a listener of their own, so that nothing of theirs has the origin of the API or the
 * dashboard. All of it belongs to the loop's thread but where it says otherwise. */
#ifndef SERVER_PREVIEWS_H
#define SERVER_PREVIEWS_H

#include "server/listener_tls.h"
#include "server/preview.h"
#include "server/server.h"
#include "util/err.h"

/* fd: a socket that listens, taken over. tls: NULL, or borrowed. -EINVAL where the configuration is not right. */
int previews_new(struct server *server, int fd, const struct listener_tls *tls,
	struct previews **ret_previews, struct err *err);
/* Stops listening and closes all connections; before the workers end. */
void previews_stop(struct previews *previews);
void previews_free(struct previews *previews);

/* "previews" in --config: {"domain": NAME, "port": NUMBER, "tls": BOOL}. */
int previews_check(const json_t *config, struct err *err);

/* Where they are shown; NULL where previews is NULL: this server shows none. From any thread. */
const struct preview_place *previews_place(const struct previews *previews);
/* One was removed, or is shown to others: who sees it and may no more is cut off. previews may be NULL. From a worker. Other
 * replicas notice within seconds, as this one does of a key that is revoked. */
void previews_changed(struct previews *previews);

#endif
