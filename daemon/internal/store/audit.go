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
// lines. Only the process that holds the daemon's lock writes it. It is safe for concurrent use.
type Audit struct {
	path string
	max  int64

	mu sync.Mutex
	// below: guarded by mu
	f, head watchedFile
	last    auditHead
	found   string // what another process did to the files, until it is recorded
}

// watchedFile is an open file that detects when another process replaced or changed it.
type watchedFile struct {
	*os.File
	opened fs.FileInfo
	size   int64 // expected size if nobody else wrote to it; of the log only
}

func openWatched(path string, flag int) (w watchedFile, err error) {
	if w.File, err = os.OpenFile(path, flag|os.O_WRONLY|os.O_CREATE, 0o600); err != nil {
		return w, err
	}
	if w.opened, err = w.Stat(); err == nil && !w.opened.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		w.Close()
		return w, err
	}
	w.size = w.opened.Size()
	return w, nil
}

func (w *watchedFile) append(p []byte) error {
	n, err := w.Write(p)
	w.size += int64(n)
	return err
}

// touched returns what happened to the file at the path since it was opened, "" for nothing. sized: compare the size as well.
func (w *watchedFile) touched(sized bool) string {
	now, err := os.Stat(w.Name())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "removed"
	case err != nil:
		return "made unreadable"
	case !os.SameFile(w.opened, now):
		return "replaced"
	case sized && now.Size() != w.size:
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
	last, err := a.openLocked()
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	a.last = auditHead{seq: max(last.Seq, known.seq), hash: last.hash} // so that no number is used twice after entries were removed
	if why := known.fault(last); why != "" {
		if err := a.recordLocked(AuditEntry{At: time.Now(), Event: "broken", Why: why}); err != nil {
			a.Close()
			return nil, err
		}
	}
	return a, nil
}

// openLocked opens both files and returns the last line of the log.
func (a *Audit) openLocked() (last auditLine, err error) {
	last, torn, err := lastLine(a.path)
	if err != nil {
		return last, err
	}
	f, err := openWatched(a.path, os.O_APPEND)
	if err != nil {
		return last, err
	}
	head, err := openWatched(a.path+".head", 0)
	if err != nil {
		f.Close()
		return last, err
	}
	if torn {
		// A crash cut the last line off: end it, so that the next one is separate; the chain covers both.
		if err := f.append([]byte{'\n'}); err != nil {
			f.Close()
			head.Close()
			return last, err
		}
	}
	a.f, a.head = f, head
	return last, nil
}

// touchedLocked returns what another process did to the files, "" for nothing.
func (a *Audit) touchedLocked() string {
	name, what := a.path, a.f.touched(true)
	if what == "" {
		name, what = a.path+".head", a.head.touched(false)
	}
	if what == "" {
		return ""
	}
	return fmt.Sprintf("%s was %s after entry %d, while the daemon ran", name, what, a.last.seq)
}

// Record numbers e, chains it to the entry before and writes it as one line in one write. If another process changed the
// files, it opens them anew, records that and then e, and returns a *TouchedError. After any other error e may be missing.
func (a *Audit) Record(e AuditEntry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if why := a.touchedLocked(); why != "" {
		f, head := a.f, a.head
		if _, err := a.openLocked(); err != nil {
			return fmt.Errorf("audit: %s: %w", why, err)
		}
		f.Close()
		head.Close()
		a.found = why
	}
	why := a.found
	if why != "" {
		if err := a.recordLocked(AuditEntry{At: time.Now(), Event: "broken", Why: why}); err != nil {
			return err
		}
		a.found = ""
	}
	if err := a.recordLocked(e); err != nil || why == "" {
		return err
	}
	return &TouchedError{why}
}

func (a *Audit) recordLocked(e AuditEntry) error {
	e.Seq, e.Prev = a.last.seq+1, a.last.hash
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if a.f.size > 0 && a.f.size+int64(len(line)) >= a.max {
		if err := a.rotateLocked(); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
	}
	before := a.f.size
	if err := a.f.append(append(line, '\n')); err != nil {
		if n := a.f.size - before; n > 0 { // a part of the line was written: end it; the chain covers the part
			a.last.hash = auditHash(line[:min(int(n), len(line))])
			_ = a.f.append([]byte{'\n'})
		}
		return fmt.Errorf("audit: %w", err)
	}
	a.last = auditHead{e.Seq, auditHash(line)}
	if _, err := a.head.WriteAt([]byte(a.last.String()), 0); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// rotateLocked renames the full file to .1, the older ones accordingly, and removes the oldest.
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
	next, err := openWatched(a.path, os.O_APPEND)
	if err != nil {
		return err
	}
	full := a.f
	a.f = next
	return full.Close()
}

// Close closes the files; Record fails afterwards.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Join(a.f.Close(), a.head.Close())
}

// String returns the head in the format of its file, which has a fixed width so that it can be overwritten in place.
func (h auditHead) String() string { return fmt.Sprintf("%020d %64s\n", h.seq, h.hash) }

// fault returns what is wrong with a log that ends in last if h was the last known line; "" = nothing.
func (h auditHead) fault(last auditLine) string {
	switch {
	case h.seq == last.Seq && h.hash == last.hash:
	case h.seq+1 == last.Seq && h.hash == last.Prev: // the head is written after its line: a crash came between
	case last.torn: // cut off by a crash; VerifyAudit checks the line before it
	case h.seq == 0 && last.Seq == 0 && last.raw != nil: // written by a version that did not number entries
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
	text, err := os.ReadFile(path + ".head")
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return auditHead{}, nil
	}
	if err != nil {
		return auditHead{}, err
	}
	var h auditHead
	if _, err := fmt.Sscanf(string(text), "%d %s\n", &h.seq, &h.hash); err != nil || len(strings.TrimSpace(h.hash)) != 64 {
		return auditHead{}, fmt.Errorf("%s.head cannot be read: %q; move it away to continue", path, bytes.TrimSpace(text))
	}
	return h, nil
}
