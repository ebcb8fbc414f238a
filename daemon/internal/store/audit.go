package store

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// AuditEntry is one decision or one execution. Command is masked by the caller.
type AuditEntry struct {
	At         time.Time `json:"at"`
	Event      string    `json:"event"` // decision, execution
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
	Status     string    `json:"status"`   // of executions
	ExitCode   *int      `json:"exit_code"`
	DurationMS int64     `json:"duration_ms"`
}

// Audit appends to a file of JSON lines, mode 0600. It is safe for concurrent use.
type Audit struct {
	mu sync.Mutex
	// below: guarded by mu
	f *os.File
}

// OpenAudit opens or makes the file at path.
func OpenAudit(path string) (*Audit, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	return &Audit{f: f}, nil
}

// Record writes e as one line with one write, so that lines of two daemons never mix.
func (a *Audit) Record(e AuditEntry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// Close closes the file; Record fails afterwards.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.f.Close()
}
