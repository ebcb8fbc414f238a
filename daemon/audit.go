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

// AuditLog is where the audit log is written; older files lie beside it.
func AuditLog(p socket.Paths) string { return filepath.Join(p.State, "audit.log") }

// ReadAudit goes over the entries of the audit log at path, the oldest first, until f returns an error, which it passes
// on. It needs no daemon, and a log that is not there has no entries.
func ReadAudit(path string, f func(AuditEntry) error) error { return store.ReadAudit(path, f) }

// VerifyAudit checks that the audit log at path is as it was written.
func VerifyAudit(path string) (AuditReport, error) { return store.VerifyAudit(path) }
