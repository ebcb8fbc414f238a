package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// maxAudit is the size at which a file of the audit log is put aside, in bytes; maxAuditFiles how many are kept beside
	// the one that is written: .1 is the newest of them.
	maxAudit      = 16 << 20
	maxAuditFiles = 9
)

// AuditEntry is one decision or one execution, one line of JSON in the log. Command and Why are masked by the caller.
type AuditEntry struct {
	Seq        int64     `json:"seq"`  // grows by one, from 1, also over the files; set by Record
	Prev       string    `json:"prev"` // lower-case hex SHA-256 of the line before, "" for the first; set by Record
	At         time.Time `json:"at"`
	Event      string    `json:"event"` // decision, execution, broken
	Session    string    `json:"session"`
	Turn       string    `json:"turn"`
	Agent      string    `json:"agent"`
	Model      string    `json:"model"`
	Tool       string    `json:"tool"`
	Command    string    `json:"command"`
	Cwd        string    `json:"cwd"`
	Level      string    `json:"level"`
	Decision   string    `json:"decision"` // allow, deny; "" for executions
	By         string    `json:"by"`       // policy, rule ID, client NAME PID, expiry, nobody
	Rule       string    `json:"rule"`     // pattern of the rule that decided
	Why        string    `json:"why"`      // in words
	Status     string    `json:"status"`   // of executions
	ExitCode   *int      `json:"exit_code"`
	DurationMS int64     `json:"duration_ms"`
}

// Audit appends to a file of JSON lines, mode 0600. Each line names the hash of the one before it, over all files, and
// the file's name with .head added holds the last line's: what is changed, taken out or cut off shows (VerifyAudit).
// One process writes it at a time, the one that holds the daemon's lock. It is safe for concurrent use.
type Audit struct {
	path string
	max  int64

	mu sync.Mutex
	// below: guarded by mu
	f, head *os.File
	size    int64
	last    auditHead
}

// auditHead names a line: the last one, or none.
type auditHead struct {
	seq  int64
	hash string
}

// OpenAudit opens or makes the log at path and goes on with its chain. Where the log is not the one that was closed, the
// first new line says so.
func OpenAudit(path string) (*Audit, error) {
	a := &Audit{path: path, max: maxAudit}
	known, err := readHead(path)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	last, torn, err := lastLine(path)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	if a.head, err = os.OpenFile(path+".head", os.O_WRONLY|os.O_CREATE, 0o600); err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	if err := a.openLocked(); err != nil {
		a.head.Close()
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	a.last = auditHead{seq: max(last.Seq, known.seq), hash: last.hash}
	if torn {
		// The end of a line that a crash cut off: the next one begins on its own, and the chain covers both.
		if _, err := a.f.Write([]byte{'\n'}); err != nil {
			a.Close()
			return nil, fmt.Errorf("open audit log: %w", err)
		}
	}
	// The head is written after its line, so it may be one behind.
	if why := known.fault(last); why != "" {
		if err := a.Record(AuditEntry{At: time.Now(), Event: "broken", Why: why}); err != nil {
			a.Close()
			return nil, err
		}
	}
	return a, nil
}

func (a *Audit) openLocked() error {
	f, err := os.OpenFile(a.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	a.f, a.size = f, info.Size()
	return nil
}

// Record numbers e, chains it to the entry before and writes it as one line with one write.
func (a *Audit) Record(e AuditEntry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.Seq, e.Prev = a.last.seq+1, a.last.hash
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if a.size > 0 && a.size+int64(len(line)) >= a.max {
		if err := a.rotateLocked(); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
	}
	n, err := a.f.Write(append(line, '\n'))
	a.size += int64(n)
	if err != nil {
		if n > 0 { // a part of it is there: the next one stands on its own line, and the chain covers the part
			a.last.hash = auditHash(line[:min(n, len(line))])
			_, _ = a.f.Write([]byte{'\n'})
		}
		return fmt.Errorf("audit: %w", err)
	}
	a.last = auditHead{e.Seq, auditHash(line)}
	if _, err := a.head.WriteAt([]byte(a.last.String()), 0); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// rotateLocked puts the full file aside; the oldest goes.
func (a *Audit) rotateLocked() error {
	for i := maxAuditFiles; i > 1; i-- {
		err := os.Rename(auditFile(a.path, i-1), auditFile(a.path, i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(a.path, auditFile(a.path, 1)); err != nil {
		return err
	}
	full := a.f
	if err := a.openLocked(); err != nil {
		return err
	}
	return full.Close()
}

// Close closes the files; Record fails afterwards.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Join(a.f.Close(), a.head.Close())
}

// String is the head as its file holds it, of one width so that it is written over in place.
func (h auditHead) String() string { return fmt.Sprintf("%020d %64s\n", h.seq, h.hash) }

// fault is what is wrong with a log that ends in last, when h was the last line that was known; "" = nothing.
func (h auditHead) fault(last auditLine) string {
	switch {
	case h.seq == last.Seq && h.hash == last.hash:
	case h.seq+1 == last.Seq && h.hash == last.Prev:
	case last.torn: // cut off by a crash; the line before it is VerifyAudit's to look at
	case h.seq == 0 && last.Seq == 0 && last.raw != nil: // of a daemon that did not number them
	case h.seq == 0:
		return "what it knew of the log's end was gone"
	case last.raw == nil:
		return fmt.Sprintf("the log was empty, although it had %d entries", h.seq)
	case h.seq > last.Seq:
		return fmt.Sprintf("the log ended at entry %d, although it had %d", last.Seq, h.seq)
	default:
		return fmt.Sprintf("the last entry, %d, was not the one that was written", last.Seq)
	}
	return ""
}

// readHead reads what the last line is to be; the zero value where nothing was written yet.
func readHead(path string) (auditHead, error) {
	text, err := os.ReadFile(path + ".head")
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return auditHead{}, nil
	}
	if err != nil {
		return auditHead{}, err
	}
	var h auditHead
	if _, err := fmt.Sscanf(string(text), "%d %s\n", &h.seq, &h.hash); err != nil || len(strings.TrimSpace(h.hash)) != 64 {
		return auditHead{}, fmt.Errorf("%s.head cannot be read: %q; move it away to go on", path, bytes.TrimSpace(text))
	}
	return h, nil
}
