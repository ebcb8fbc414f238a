package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxAudit is the size in bytes at which a file of the audit log is renamed to .1; maxAuditFiles is how many such files are
	// kept, .1 being the newest.
	maxAudit      = 16 << 20
	maxAuditFiles = 9
)

// AuditEntry is a decision or an execution, one line of JSON in the log. The caller masks secrets in Command and Why.
type AuditEntry struct {
	Seq        int64     `json:"seq"`  // grows by one, from 1, across all files; set by Record
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

// Audit appends to a file of JSON lines, mode 0600. Each line contains the hash of the one before it, across all files, and
// the file's name with .head added has the hash of the last line, so that VerifyAudit detects changed, removed and cut off
// lines. Only the process that holds the daemon's lock writes it. It is safe for concurrent use. Each entry opens the files again, so
// that none is written to a file that another process has removed or replaced.
type Audit struct {
	path string
	max  int64

	mu sync.Mutex
	// below: guarded by mu
	last      auditHead
	log, head fs.FileInfo // the files as they were left
}

// write writes text to the named regular file, creating it if necessary, and sets left to the file's state after that.
func write(name string, flag int, text []byte, left *fs.FileInfo) (n int, err error) {
	f, _, err := openRegular(name, flag|os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return 0, err
	}
	n, err = f.Write(text)
	if info, serr := f.Stat(); serr == nil {
		*left = info
	}
	return n, errors.Join(err, f.Close())
}

// openRegular opens a regular file. It does not wait for the other end of a pipe of that name.
func openRegular(name string, flag int) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(name, flag|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// touched returns what happened to the file of that name since it was left, "" for nothing. sized: compare the size as well.
func touched(name string, left fs.FileInfo, sized bool) string {
	now, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "removed"
	case err != nil:
		return "made unreadable"
	case !os.SameFile(left, now):
		return "replaced"
	case sized && now.Size() != left.Size():
		return "changed"
	}
	return ""
}

// A TouchedError reports that another process removed, replaced or changed the log while it was in use. The entry was
// recorded nevertheless, after an entry about that.
type TouchedError struct{ Why string }

func (e *TouchedError) Error() string { return e.Why }

// Hint returns what to do.
func (e *TouchedError) Hint() string {
	return "`sublet audit verify` shows what is missing; what was decided since is recorded"
}

// auditHead identifies the last line of a log; the zero value means that there is none.
type auditHead struct {
	seq  int64
	hash string
}

// OpenAudit opens or creates the log at path and continues its hash chain. If the log was changed since it was last written, it
// first records that.
func OpenAudit(path string) (*Audit, error) {
	a := &Audit{path: path, max: maxAudit}
	known, err := readHead(path)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	last, err := a.resumeLocked()
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	a.last = auditHead{seq: max(last.Seq, known.seq), hash: last.hash} // so that no number is used twice after entries were removed
	if why := known.fault(last); why != "" {
		if err := a.recordLocked(AuditEntry{At: time.Now(), Event: "broken", Why: why}); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// resumeLocked makes the files ready for the next entry and returns the last line of the log. If a crash cut that off, it is ended, so
// that the next one is separate; the chain covers both.
func (a *Audit) resumeLocked() (last auditLine, err error) {
	last, unended, err := lastLine(a.path)
	if err != nil {
		return last, err
	}
	var end []byte
	if unended {
		end = []byte{'\n'}
	}
	if _, err = write(a.path, os.O_APPEND, end, &a.log); err == nil {
		_, err = write(a.path+".head", 0, nil, &a.head)
	}
	return last, err
}

// touchedLocked returns what another process did to the files, "" for nothing.
func (a *Audit) touchedLocked() string {
	name, what := a.path, touched(a.path, a.log, true)
	if what == "" {
		name = a.path + ".head"
		if what = touched(name, a.head, false); what == "" {
			return ""
		}
	}
	return fmt.Sprintf("%s was %s after entry %d, while the daemon ran", name, what, a.last.seq)
}

// Record numbers e, chains it to the entry before and writes it as one line in one write. If another process changed the
// files, it records that and then e, and returns a *TouchedError. After any other error e may be missing.
func (a *Audit) Record(e AuditEntry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	why := a.touchedLocked()
	if why != "" {
		if _, err := a.resumeLocked(); err != nil {
			return fmt.Errorf("audit: %s: %w", why, err)
		}
		if err := a.recordLocked(AuditEntry{At: time.Now(), Event: "broken", Why: why}); err != nil {
			return err
		}
	}
	if err := a.recordLocked(e); err != nil || why == "" {
		return err
	}
	return &TouchedError{why}
}

// recordLocked is Record without the check for another process's changes. It writes the line, then the head file.
func (a *Audit) recordLocked(e AuditEntry) error {
	e.Seq, e.Prev = a.last.seq+1, a.last.hash
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if size := a.log.Size(); size > 0 && size+int64(len(line)) >= a.max {
		if err := rotateAudit(a.path); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
	}
	if n, err := write(a.path, os.O_APPEND, append(line, '\n'), &a.log); err != nil {
		if n > 0 { // a part of the line was written: end it; the chain covers the part
			a.last.hash = auditHash(line[:min(n, len(line))])
			_, _ = write(a.path, os.O_APPEND, []byte{'\n'}, &a.log)
		}
		return fmt.Errorf("audit: %w", err)
	}
	a.last = auditHead{e.Seq, auditHash(line)}
	if _, err := write(a.path+".head", 0, []byte(a.last.String()), &a.head); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// rotateAudit renames the full file to .1, the older ones accordingly, and removes the oldest.
func rotateAudit(path string) error {
	for i := maxAuditFiles; i > 0; i-- {
		err := os.Rename(auditFile(path, i-1), auditFile(path, i))
		if err != nil && (i == 1 || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// String returns the head in the format of its file, which has a fixed width so that it can be overwritten in place.
func (h auditHead) String() string { return fmt.Sprintf("%020d %64s\n", h.seq, h.hash) }

// fault returns what is wrong with a log that ends in last if h was the last known line; "" = nothing.
func (h auditHead) fault(last auditLine) string {
	switch {
	case h.seq == last.Seq && h.hash == last.hash:
	case h.seq+1 == last.Seq && h.hash == last.Prev: // the head is written after its line: a crash came between
	case last.torn: // cut off by a crash; VerifyAudit checks the line before it
	case h.seq == 0:
		return "the record of the log's last entry was gone"
	case last.raw == nil:
		return fmt.Sprintf("the log was empty, although it had %d entries", h.seq)
	case h.seq > last.Seq:
		return fmt.Sprintf("the log ended at entry %d, although it had %d", last.Seq, h.seq)
	default:
		return fmt.Sprintf("the last entry, %d, was not the one that was written", last.Seq)
	}
	return ""
}

// readHead returns the recorded last line; the zero value if nothing was written yet.
func readHead(path string) (auditHead, error) {
	f, _, err := openRegular(path+".head", os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return auditHead{}, nil
	}
	if err != nil {
		return auditHead{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil || len(text) == 0 {
		return auditHead{}, err
	}
	var h auditHead
	if _, err := fmt.Sscanf(string(text), "%d %s\n", &h.seq, &h.hash); err != nil || len(strings.TrimSpace(h.hash)) != 64 {
		return auditHead{}, fmt.Errorf("%s.head cannot be read: %q; move it away to continue", path, bytes.TrimSpace(text))
	}
	return h, nil
}
