-- SPDX-License-Identifier: Apache-2.0
-- Objects whose name alone says which they are (a preview's, by its host name), and those of an account of all its sandboxes.
CREATE INDEX object_name ON object (kind, name);
CREATE INDEX object_account ON object (account, kind, name);
