-- SPDX-License-Identifier: Apache-2.0
-- The part of 0001 that is PostgreSQL's own: every three characters of log.search in an index beside it.
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE INDEX log_search ON log USING gin (search gin_trgm_ops);
-- Lists go by these, in the order of their bytes whatever the database's own language is.
ALTER TABLE account ALTER COLUMN id TYPE TEXT COLLATE "C";
ALTER TABLE api_key ALTER COLUMN id TYPE TEXT COLLATE "C";
ALTER TABLE object ALTER COLUMN name TYPE TEXT COLLATE "C";
