package daemon

import (
	"path/filepath"

	"sublet/daemon/internal/store"
	"sublet/wire/socket"
)

// AuditEntry is one line of the audit log: a decision or an execution.
type AuditEntry = store.AuditEntry

// AuditReport is what VerifyAudit found.
type AuditReport = store.AuditReport

// AuditLog returns the path of the audit log; older files are in the same folder.
func AuditLog(p socket.Paths) string { return filepath.Join(p.State, "audit.log") }

// ReadAudit calls f for each entry of the audit log at path, oldest first, and stops at the first error of f, which it
// returns. It needs no daemon. A log that does not exist has no entries.
func ReadAudit(path string, f func(AuditEntry) error) error { return store.ReadAudit(path, f) }

// VerifyAudit checks the hash chain of the audit log at path.
func VerifyAudit(path string) (AuditReport, error) { return store.VerifyAudit(path) }
