package store

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// auditLine is a line as it was read.
type auditLine struct {
	AuditEntry
	raw  []byte // without its newline; nil = there is no line
	hash string
	torn bool // it cannot be parsed: a crash cut it off
	open bool // it has no newline
}

func auditHash(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// auditFile returns the name of the i-th renamed file; 0 is the one that is written.
func auditFile(path string, i int) string {
	if i == 0 {
		return path
	}
	return path + "." + strconv.Itoa(i)
}

// readLine parses a line of the log and keeps raw. whole reports whether it ended in a newline.
func readLine(raw []byte, whole bool) auditLine {
	l := auditLine{raw: raw, hash: auditHash(raw), open: !whole}
	l.torn = json.Unmarshal(raw, &l.AuditEntry) != nil
	if l.torn {
		l.AuditEntry = AuditEntry{}
	}
	return l
}

// lastLine returns the last line of the newest file that has one. unended reports that the file that is written ends without a newline.
func lastLine(path string) (last auditLine, unended bool, err error) {
	for i := range 2 { // the newest file may be empty after a crash during rotation
		text, err := tail(auditFile(path, i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return last, false, err
		}
		if len(text) == 0 {
			continue
		}
		whole := text[len(text)-1] == '\n'
		text = bytes.TrimSuffix(text, []byte{'\n'})
		last = readLine(bytes.Clone(text[bytes.LastIndexByte(text, '\n')+1:]), whole)
		return last, !whole && i == 0, nil
	}
	return last, false, nil
}

// maxAuditLine bounds one line in bytes: a command may have a megabyte, and JSON escapes a byte with up to six.
const maxAuditLine = 16 << 20

// tail returns the end of a file, long enough for the longest line.
func tail(name string) ([]byte, error) {
	f, info, err := openRegular(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for n := int64(64 << 10); ; n *= 16 {
		from := max(0, info.Size()-n)
		text := make([]byte, info.Size()-from)
		if _, err := f.ReadAt(text, from); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if from == 0 || n >= maxAuditLine || bytes.Count(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\n'}) > 0 {
			return text, nil
		}
	}
}

// eachLine calls f for each line of the log, oldest first; where is its file and line number.
func eachLine(path string, f func(where string, l auditLine) error) error {
	for i := maxAuditFiles; i >= 0; i-- {
		if err := linesOf(auditFile(path, i), f); err != nil {
			return err
		}
	}
	return nil
}

func linesOf(name string, f func(where string, l auditLine) error) error {
	file, _, err := openRegular(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 256<<10)
	for n := 1; ; n++ {
		raw, err := r.ReadBytes('\n')
		if len(raw) > 0 {
			l := readLine(bytes.TrimSuffix(raw, []byte{'\n'}), err == nil)
			if err := f(name+":"+strconv.Itoa(n), l); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// ReadAudit calls f for each entry of the log at path, oldest first, and stops at the first error of f, which it returns. It
// leaves out lines that a crash cut off. A log that does not exist has no entries.
func ReadAudit(path string, f func(AuditEntry) error) error {
	return eachLine(path, func(_ string, l auditLine) error {
		if l.torn {
			return nil
		}
		return f(l.AuditEntry)
	})
}

// AuditReport is the result of VerifyAudit.
type AuditReport struct {
	Entries     int
	First, Last int64    // numbers of the oldest and the newest entry; old files are removed in time
	Faults      []string // violations of the hash chain, with file and line; nil = none
	Notes       []string // irregularities that are explained: a line that a crash cut off
}

// maxAuditFaults bounds Faults and Notes.
const maxAuditFaults = 20

// VerifyAudit checks the hash chain of the log at path, from the oldest line that is kept to the last one. The log may be
// written at the same time.
func VerifyAudit(path string) (AuditReport, error) {
	rep, err := verifyAudit(path)
	if err == nil && len(rep.Faults) > 0 {
		rep, err = verifyAudit(path) // a rotation during the check looks like a fault: try again
	}
	return rep, err
}

// verifyAudit does the work of VerifyAudit once: the entries must follow on each other, and the last one be that of the head file, which
// is kept beside the log so that a log cut off at its end is noticed. An error means that it could not be read.
func verifyAudit(path string) (AuditReport, error) {
	var rep AuditReport
	head, err := readHead(path) // before the log, which may grow at the same time
	if err != nil {
		rep.fault("%v", err)
	}
	var last auditHead
	met := head.seq == 0
	first := true
	err = eachLine(path, func(where string, l auditLine) error {
		switch {
		case l.torn && l.open:
			return nil // the line is being written
		case l.torn:
			rep.note("%s: a line that was cut off", where)
			last.hash, first = l.hash, false
			return nil
		}
		rep.Entries++
		switch {
		case first:
			rep.First = l.Seq
			if l.Seq < 1 || (l.Seq == 1) != (l.Prev == "") {
				rep.fault("%s: entry %d cannot be the first", where, l.Seq)
			}
			// Entries may be missing only before the oldest of maxAuditFiles files.
			if l.Seq > 1 && !strings.HasPrefix(where, auditFile(path, maxAuditFiles)+":") {
				rep.fault("%s: begins at entry %d; those before it are gone", where, l.Seq)
			}
		case l.Prev != last.hash:
			rep.fault("%s: entry %d does not follow on what stands before it: that was changed, or something between them is gone", where, l.Seq)
		case l.Seq != last.seq+1:
			rep.fault("%s: entry %d comes after %d", where, l.Seq, last.seq)
		}
		if l.Event == "broken" {
			rep.fault("%s: the daemon found that %s", where, l.Why)
		}
		if l.Seq == head.seq {
			met = true
			if l.hash != head.hash {
				rep.fault("%s: entry %d is not the one that was written last", where, l.Seq)
			}
		}
		last, first = auditHead{l.Seq, l.hash}, false
		rep.Last = l.Seq
		return nil
	})
	if err != nil {
		return rep, err
	}
	if !met {
		rep.fault("%s: ends at entry %d, although %d were written", path, last.seq, head.seq)
	}
	return rep, nil
}

func (r *AuditReport) fault(format string, args ...any) {
	if len(r.Faults) < maxAuditFaults {
		r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
	}
}

func (r *AuditReport) note(format string, args ...any) {
	if len(r.Notes) < maxAuditFaults {
		r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
	}
}
