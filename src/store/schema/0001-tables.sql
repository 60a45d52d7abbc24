-- SPDX-License-Identifier: Apache-2.0
-- Both databases read this file: whole numbers are BIGINT (times in ms since 1970, 0 for "not yet"), all else is TEXT.
-- Once released a file here never changes; a new one with the next number follows it.

-- The last number given out in a table. Whoever adds takes its numbers here and so keeps this row until its commit:
-- rows become visible in the order of their numbers, and a reader behind number N misses nothing that comes later.
CREATE TABLE counter (
	name TEXT PRIMARY KEY,
	last BIGINT NOT NULL
);
INSERT INTO counter (name, last) VALUES ('log', 0), ('lifecycle', 0), ('audit', 0), ('delivery', 0), ('sandbox', 0);

CREATE TABLE account (
	id TEXT PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	max_sandboxes BIGINT NOT NULL,
	max_execs BIGINT NOT NULL,
	created_ms BIGINT NOT NULL
);

CREATE TABLE api_key (
	id TEXT PRIMARY KEY,
	account TEXT NOT NULL REFERENCES account (id),
	hash TEXT NOT NULL UNIQUE,
	prefix TEXT NOT NULL,
	name TEXT NOT NULL,
	role TEXT NOT NULL CHECK (role IN ('admin', 'member', 'auditor')),
	rate_limit BIGINT NOT NULL,
	created_ms BIGINT NOT NULL,
	used_ms BIGINT NOT NULL,
	revoked_ms BIGINT NOT NULL
);
CREATE INDEX api_key_account ON api_key (account, id);

-- place: the host whose record it is, by the fingerprint of its key.
CREATE TABLE sandbox (
	id TEXT PRIMARY KEY,
	n BIGINT NOT NULL UNIQUE,
	account TEXT NOT NULL REFERENCES account (id),
	name TEXT NOT NULL,
	state TEXT NOT NULL,
	place TEXT NOT NULL,
	labels TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	ended_ms BIGINT NOT NULL
);
CREATE INDEX sandbox_account ON sandbox (account, n);
CREATE INDEX sandbox_state ON sandbox (account, state, n);
CREATE INDEX sandbox_place ON sandbox (place, n);
CREATE INDEX sandbox_ended ON sandbox (ended_ms, id);

CREATE TABLE sandbox_label (
	sandbox TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (sandbox, name)
);

-- A record that was removed or aged out: what is indexed again from its rest stays out.
CREATE TABLE tombstone (
	sandbox TEXT PRIMARY KEY,
	account TEXT NOT NULL,
	reason TEXT NOT NULL,
	at_ms BIGINT NOT NULL
);
CREATE INDEX tombstone_at ON tombstone (at_ms);

CREATE TABLE log (
	n BIGINT NOT NULL,
	sandbox TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,
	seq BIGINT NOT NULL,
	id BIGINT NOT NULL,
	account TEXT NOT NULL,
	exec TEXT NOT NULL,
	source TEXT NOT NULL,
	operation TEXT NOT NULL,
	exit_code BIGINT,
	output_truncated BIGINT NOT NULL,
	at_ms BIGINT NOT NULL,
	duration_ms BIGINT NOT NULL,
	search TEXT NOT NULL,
	json TEXT NOT NULL,
	PRIMARY KEY (sandbox, seq)
);
CREATE UNIQUE INDEX log_n ON log (n);
-- With the time, so that rows of other times are passed over without being read.
CREATE INDEX log_sandbox_n ON log (sandbox, n, at_ms);
CREATE INDEX log_account_n ON log (account, n, at_ms);
CREATE INDEX log_exec ON log (sandbox, exec);

CREATE TABLE lifecycle (
	n BIGINT NOT NULL UNIQUE,
	sandbox TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,
	seq BIGINT NOT NULL,
	account TEXT NOT NULL,
	at_ms BIGINT NOT NULL,
	kind TEXT NOT NULL,
	json TEXT NOT NULL,
	PRIMARY KEY (sandbox, seq)
);
CREATE INDEX lifecycle_sandbox_n ON lifecycle (sandbox, n);

-- place, journal: the host, and the number of the line in its launcher's journal, of which this is the index.
CREATE TABLE audit (
	place TEXT NOT NULL,
	journal BIGINT NOT NULL,
	n BIGINT NOT NULL UNIQUE,
	account TEXT NOT NULL,
	at_ms BIGINT NOT NULL,
	kind TEXT NOT NULL,
	json TEXT NOT NULL,
	PRIMARY KEY (place, journal)
);
CREATE INDEX audit_account_n ON audit (account, n, at_ms);
CREATE INDEX audit_at ON audit (at_ms);

-- Secrets, rules, proxies, previews, webhooks: of an account (sandbox '') or of one sandbox.
CREATE TABLE object (
	account TEXT NOT NULL REFERENCES account (id),
	kind TEXT NOT NULL,
	sandbox TEXT NOT NULL,
	name TEXT NOT NULL,
	changed_ms BIGINT NOT NULL,
	json TEXT NOT NULL,
	PRIMARY KEY (account, kind, sandbox, name)
);
CREATE INDEX object_sandbox ON object (sandbox);

CREATE TABLE delivery (
	n BIGINT NOT NULL UNIQUE,
	id TEXT PRIMARY KEY,
	account TEXT NOT NULL,
	webhook TEXT NOT NULL,
	state TEXT NOT NULL CHECK (state IN ('waiting', 'sent', 'failed')),
	attempt BIGINT NOT NULL,
	due_ms BIGINT NOT NULL,
	created_ms BIGINT NOT NULL,
	result TEXT NOT NULL,
	json TEXT NOT NULL
);
CREATE INDEX delivery_due ON delivery (due_ms) WHERE state = 'waiting';
CREATE INDEX delivery_state ON delivery (state);
CREATE INDEX delivery_webhook ON delivery (account, webhook, n);
CREATE INDEX delivery_created ON delivery (created_ms);

CREATE TABLE idempotency (
	account TEXT NOT NULL,
	name TEXT NOT NULL,
	request TEXT NOT NULL,
	started_ms BIGINT NOT NULL,
	expires_ms BIGINT NOT NULL,
	status BIGINT NOT NULL,
	answer TEXT NOT NULL,
	PRIMARY KEY (account, name)
);
CREATE INDEX idempotency_expires ON idempotency (expires_ms);

CREATE TABLE token (
	hash TEXT PRIMARY KEY,
	sandbox TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,
	api_key TEXT NOT NULL REFERENCES api_key (id) ON DELETE CASCADE,
	expires_ms BIGINT NOT NULL
);
CREATE INDEX token_expires ON token (expires_ms);
CREATE INDEX token_sandbox ON token (sandbox);

CREATE TABLE rate (
	name TEXT PRIMARY KEY,
	second BIGINT NOT NULL,
	used BIGINT NOT NULL,
	granted BIGINT NOT NULL
);

CREATE TABLE metric (
	sandbox TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,
	at_ms BIGINT NOT NULL,
	json TEXT NOT NULL,
	PRIMARY KEY (sandbox, at_ms)
);
CREATE INDEX metric_at ON metric (at_ms);
