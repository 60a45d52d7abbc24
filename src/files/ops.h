/* SPDX-License-Identifier: Apache-2.0 */
/* The operations: each reads what it needs, writes its answer and returns, or ends the program (outcome.h). */
#ifndef FILES_OPS_H
#define FILES_OPS_H

#include "proto/files_wire.h"

#define OPS_TIME_MS 10000 /* after which a search gives what it has */

void ops_create(const struct files_wire_request *request);
void ops_view(const struct files_wire_request *request);
void ops_replace(const struct files_wire_request *request);
void ops_ls(const struct files_wire_request *request);
void ops_glob(const struct files_wire_request *request);
void ops_grep(const struct files_wire_request *request);
void ops_download(const struct files_wire_request *request);

#endif
