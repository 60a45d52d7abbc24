/* SPDX-License-Identifier: Apache-2.0 */
/* What a control plane wants done, done by the program that does it for a person: `cloche VERB`, with arguments from a
 * table. */
#ifndef LAUNCHER_OFFICE_VERB_H
#define LAUNCHER_OFFICE_VERB_H

#include "launcher/office.h"

struct office_verb_request {
	const char *id;
	const json_t *body; /* {verb, options: [...], words: [...], hidden, actor} */
	int stdout_fd;      /* -1: what it prints is in the answer, up to 64 KiB */
	int reply_fd;
};

/* Runs it and waits; {"ok":true,"status":N,"output":text,"error":text} is the answer. Both are for a child of the launcher.
 * -EINVAL where the table does not have it. */
int office_verb(
	const struct office *office, const struct office_verb_request *request, struct err *err);

/* Makes a sandbox by `cloche create`: of the request {account, actor, spec, hidden}, with what the configuration lets the account
 * name. Its id is the output in the answer. */
int office_create(const struct office *office, const json_t *body, int reply_fd, struct err *err);

/* Gives a living sandbox other rules by `cloche net-rules`: of the request {rules, actor}, with what the configuration lets
 * the account name that its record says it belongs to. What is in force then is the output in the answer. */
int office_net_rules(const struct office *office, const char *id, const json_t *body, int reply_fd,
	struct err *err);

/* Likewise another upstream proxy for its new connections: {url, hidden, actor}; url without credentials, null: none. */
int office_net_proxy(const struct office *office, const char *id, const json_t *body, int reply_fd,
	struct err *err);

#endif
