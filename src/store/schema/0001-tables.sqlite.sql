-- SPDX-License-Identifier: Apache-2.0
-- The part of 0001 that is SQLite's own: every three characters of log.search in an index beside it.
CREATE VIRTUAL TABLE log_search USING fts5 (
	search, content = 'log', content_rowid = 'n', tokenize = 'trigram case_sensitive 1'
);
CREATE TRIGGER log_search_added AFTER INSERT ON log BEGIN
	INSERT INTO log_search (rowid, search) VALUES (new.n, new.search);
END;
CREATE TRIGGER log_search_removed AFTER DELETE ON log BEGIN
	INSERT INTO log_search (log_search, rowid, search) VALUES ('delete', old.n, old.search);
END;
