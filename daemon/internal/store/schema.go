package store

// migrations are applied in order; PRAGMA user_version is how many were applied. Never edit a released one: add another.
var migrations = []string{`
CREATE TABLE sessions (
	id         TEXT PRIMARY KEY,
	name       TEXT NOT NULL DEFAULT '',
	title      TEXT NOT NULL DEFAULT '',
	cwd        BLOB NOT NULL,
	created_at INTEGER NOT NULL, -- milliseconds since 1970, like every time here
	updated_at INTEGER NOT NULL,
	last_seq   INTEGER NOT NULL DEFAULT 0,
	turns      INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX sessions_by_update ON sessions (updated_at DESC, id DESC);

CREATE TABLE events (
	session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	seq        INTEGER NOT NULL,
	turn_id    TEXT NOT NULL,
	kind       TEXT NOT NULL,
	at         INTEGER NOT NULL,
	payload    BLOB NOT NULL, -- [kind, body] as it travels
	PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;

-- Turns that began and have no end: what a daemon that died leaves behind.
CREATE TABLE open_turns (
	turn_id    TEXT PRIMARY KEY,
	session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	request_id TEXT NOT NULL,
	agent      TEXT NOT NULL,
	first_seq  INTEGER NOT NULL
) STRICT;

CREATE VIRTUAL TABLE texts USING fts5 (session_id UNINDEXED, seq UNINDEXED, at UNINDEXED, body);

CREATE TABLE rules (
	id         TEXT PRIMARY KEY,
	decision   TEXT NOT NULL,
	pattern    TEXT NOT NULL,
	scope      TEXT NOT NULL,
	subject    BLOB NOT NULL,
	source     TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	expires_at INTEGER -- NULL: never
) STRICT;
`, `
ALTER TABLE sessions ADD COLUMN agent TEXT NOT NULL DEFAULT ''; -- of the latest turn

-- Ids that were deleted. A client may choose a session's id, and one that was deleted must not come back to life.
CREATE TABLE deleted_sessions (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
`, `
ALTER TABLE rules ADD COLUMN examples TEXT NOT NULL DEFAULT '{}'; -- JSON: match and no_match, lists of text
`, `
-- Which rows of texts are a session's: the index finds words and rows, never sessions.
CREATE TABLE text_rows (
	row        INTEGER PRIMARY KEY,
	session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE
) STRICT;
CREATE INDEX text_rows_by_session ON text_rows (session_id);
DELETE FROM texts WHERE session_id NOT IN (SELECT id FROM sessions);
INSERT INTO text_rows (row, session_id) SELECT rowid, session_id FROM texts;
`, `
-- The images that models were shown, by the event that brought them: events themselves hold no pixels.
CREATE TABLE images (
	session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	seq        INTEGER NOT NULL,
	n          INTEGER NOT NULL, -- its place among those of the event
	name       TEXT NOT NULL,
	mime       TEXT NOT NULL,
	width      INTEGER NOT NULL,
	height     INTEGER NOT NULL,
	size       INTEGER NOT NULL,
	data       BLOB, -- NULL: no longer kept
	PRIMARY KEY (session_id, seq, n)
) STRICT;
`, `
-- Folders whose instructions agents follow, or do not: what the user said when asked.
CREATE TABLE folders (
	path       BLOB PRIMARY KEY,
	trusted    INTEGER NOT NULL,
	decided_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`, `
-- What requests to models cost, by day of the machine's time zone.
CREATE TABLE spending (
	day TEXT PRIMARY KEY, -- 2026-11-25
	usd REAL NOT NULL
) STRICT, WITHOUT ROWID;
`, `
-- Agents in the background, and the sessions that they have of their own: lists of sessions leave these out.
CREATE TABLE agents (
	session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	name       TEXT NOT NULL,
	own_id     TEXT NOT NULL UNIQUE,
	record     TEXT NOT NULL, -- JSON
	PRIMARY KEY (session_id, name)
) STRICT, WITHOUT ROWID;
`, `
-- The sessions that agents of other programs have of their own.
CREATE TABLE hosted (
	session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	agent      TEXT NOT NULL,
	record     TEXT NOT NULL, -- JSON
	PRIMARY KEY (session_id, agent)
) STRICT, WITHOUT ROWID;
`, `
-- What agents changed in files, for undo: see maxChanges. The contents are the user's own, unmasked.
CREATE TABLE file_changes (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	path       BLOB NOT NULL,
	existed    INTEGER NOT NULL,
	secret     INTEGER NOT NULL, -- before is not kept
	after      TEXT NOT NULL, -- SHA-256 of what was written
	at         INTEGER NOT NULL,
	size       INTEGER NOT NULL, -- of before, which stands last: SQLite reads a row up to the columns it needs
	before     BLOB
) STRICT;
CREATE INDEX file_changes_by_session ON file_changes (session_id, id);
`}
