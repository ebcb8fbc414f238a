package wire

// CompactRequest replaces the older part of a session's conversation by a summary. CompactionStarted and
// CompactionComplete answer. Since protocol 1.
type CompactRequest struct {
	RequestID    `msgpack:"request_id"`
	SessionID    *SessionID `msgpack:"session_id"`
	Op           string     `msgpack:"op"` // run, preview, undo
	Instructions string     `msgpack:"instructions"`
}

// CompactionStarted also reports a compaction that the daemon began by itself. Since protocol 1.
type CompactionStarted struct {
	Event
	Events       int   `msgpack:"events"` // how many are summarised
	TokensBefore int64 `msgpack:"tokens_before"`
}

// CompactionComplete reports the end of a compaction; with any status but success and undone the conversation is
// unchanged. Since protocol 1.
type CompactionComplete struct {
	Event
	Status       string `msgpack:"status"` // success, error, cancelled, preview, undone, nothing
	Summary      string `msgpack:"summary"`
	Ledger       Ledger `msgpack:"ledger"`
	Events       int    `msgpack:"events"`
	FirstSeq     int64  `msgpack:"first_seq"` // events first_seq to last_seq are replaced by summary and ledger
	LastSeq      int64  `msgpack:"last_seq"`
	TokensBefore int64  `msgpack:"tokens_before"`
	TokensAfter  int64  `msgpack:"tokens_after"`
}

// Ledger is what a compaction must not lose. The daemon takes it from the events and keeps it beside the model's summary.
type Ledger struct {
	Goal       string          `msgpack:"goal"`
	Limits     []string        `msgpack:"limits"` // the user's standing limits, word for word
	Decisions  []string        `msgpack:"decisions"`
	Files      []OSString      `msgpack:"files"`
	Commands   []LedgerCommand `msgpack:"commands"`
	ShellState string          `msgpack:"shell_state"`
	OpenTasks  []string        `msgpack:"open_tasks"`
	Prompts    []string        `msgpack:"prompts"`   // of the user, with the names of images: the newest 24 KiB word for word, of older ones the beginning
	Reads      []string        `msgpack:"reads"`     // files that were read, each with the lines unless it is all: "main.go:10-29,40-"
	Errors     []string        `msgpack:"errors"`    // the newest three, with their messages
	Answers    []string        `msgpack:"answers"`   // the beginning of the last text of each turn
	Changes    []string        `msgpack:"changes"`   // exports, aliases, functions and options that commands changed in the shell
	Branch     string          `msgpack:"branch"`    // git's, with what is changed and not pushed
	Jobs       []string        `msgpack:"jobs"`      // background jobs that ran
	Questions  []string        `msgpack:"questions"` // that the user answered without a comment, each with the answer
}

// WithLists returns the ledger with empty lists in place of nil ones, which are null in JSON.
func (l Ledger) WithLists() Ledger {
	for _, list := range []*[]string{
		&l.Limits, &l.Decisions, &l.OpenTasks, &l.Prompts, &l.Reads, &l.Errors, &l.Answers, &l.Changes, &l.Jobs, &l.Questions,
	} {
		*list = append([]string{}, *list...)
	}
	l.Files, l.Commands = append([]OSString{}, l.Files...), append([]LedgerCommand{}, l.Commands...)
	return l
}

type LedgerCommand struct {
	Command  OSString `msgpack:"command"` // with what it printed in short, after " # ", or what it printed each time, with " → " between
	ExitCode *int     `msgpack:"exit_code"`
}

// SessionRequest works on stored sessions. SessionReply answers. Since protocol 1.
type SessionRequest struct {
	RequestID      `msgpack:"request_id"`
	Op             string     `msgpack:"op"`         // list, get, new, resume, rename, delete, clear, save, load, export, search, fork
	SessionID      *SessionID `msgpack:"session_id"` // nil: the connection's; for new, one of the daemon's choosing
	Name           string     `msgpack:"name"`
	Query          string     `msgpack:"query"`  // search
	Path           OSString   `msgpack:"path"`   // save, load
	Format         string     `msgpack:"format"` // export: json, markdown
	Cursor         string     `msgpack:"cursor"` // "" = from the start
	Limit          int        `msgpack:"limit"`  // 0 = 100, at most 1000
	AfterSeq       int64      `msgpack:"after_seq"`
	IncludeHistory bool       `msgpack:"include_history"`
	IncludeBlocks  bool       `msgpack:"include_blocks"`
	Turn           int        `msgpack:"turn"`     // fork: the last turn that is copied, from 1; 0 = all
	Project        OSString   `msgpack:"project"`  // search: only sessions begun in this folder or below; "" = all
	SinceMS        int64      `msgpack:"since_ms"` // search: only what happened since then; 0 = all
}

// SessionReply is the result, in pages: pass Cursor on while More is true. Since protocol 1.
type SessionReply struct {
	RequestID `msgpack:"request_id"`
	Op        string        `msgpack:"op"`
	Session   SessionInfo   `msgpack:"session"`
	Sessions  []SessionInfo `msgpack:"sessions"`
	Events    []Envelope    `msgpack:"events"`
	Hits      []SearchHit   `msgpack:"hits"`
	Text      string        `msgpack:"text"` // export
	Path      OSString      `msgpack:"path"` // save, load
	Size      int64         `msgpack:"size"` // save, load
	Cursor    string        `msgpack:"cursor"`
	More      bool          `msgpack:"more"`
}

// Envelope carries a whole message inside another, as [kind, body].
type Envelope struct{ Message Message }

type SessionInfo struct {
	ID          SessionID `msgpack:"id"`
	Name        string    `msgpack:"name"`
	Title       string    `msgpack:"title"` // the first prompt, cut
	Cwd         OSString  `msgpack:"cwd"`
	CreatedAtMS int64     `msgpack:"created_at_ms"`
	UpdatedAtMS int64     `msgpack:"updated_at_ms"`
	LastSeq     int64     `msgpack:"last_seq"`
	Turns       int       `msgpack:"turns"`
	Agent       string    `msgpack:"agent"` // of the latest turn; "" = none yet
	Running     bool      `msgpack:"running"`
	Stored      bool      `msgpack:"stored"` // false: nothing happened in it yet
}

type SearchHit struct {
	SessionID SessionID `msgpack:"session_id"`
	Seq       int64     `msgpack:"seq"`
	AtMS      int64     `msgpack:"at_ms"`
	Snippet   string    `msgpack:"snippet"`
}

func (*SessionRequest) AnsweredBy() *SessionReply { return nil }
