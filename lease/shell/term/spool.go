package term

import (
	"fmt"
	"os"
)

const (
	spoolAfter = 64 << 10 // raw bytes kept in memory before a file is made
	spoolMost  = 64 << 20 // bytes that a spool file keeps
)

// spool keeps the beginning of a long raw output in a file of mode 0600. A short output is never written to the disk.
type spool struct {
	folder string // "" = keep nothing
	first  []byte // the output, while there is no file
	file   *os.File
	total  int64 // bytes in the file
	failed error // the first one; nothing is written after it
}

func (s *spool) Write(p []byte) {
	if s.folder == "" || s.failed != nil {
		return
	}
	if s.file == nil {
		if len(s.first)+len(p) <= spoolAfter {
			s.first = append(s.first, p...)
			return
		}
		if s.failed = s.open(); s.failed != nil {
			return
		}
	}
	s.failed = s.put(p)
}

func (s *spool) open() error {
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return fmt.Errorf("make spool folder: %w", err)
	}
	f, err := os.CreateTemp(s.folder, "output-*.raw") // 0600
	if err != nil {
		return fmt.Errorf("make spool file: %w", err)
	}
	s.file = f
	err = s.put(s.first)
	s.first = nil
	return err
}

func (s *spool) put(p []byte) error {
	p = p[:min(int64(len(p)), spoolMost-s.total)]
	n, err := s.file.Write(p)
	s.total += int64(n)
	if err != nil {
		return fmt.Errorf("write spool file: %w", err)
	}
	return nil
}

// finish ends the spool and returns the path of its file. If keep is false, or a write failed, it removes the file and returns
// "".
func (s *spool) finish(keep bool) (string, error) {
	if s.file == nil && keep && s.folder != "" && s.failed == nil && len(s.first) > 0 {
		s.failed = s.open()
	}
	if s.file == nil {
		return "", s.failed
	}
	defer s.file.Close()
	if !keep || s.failed != nil {
		os.Remove(s.file.Name())
		return "", s.failed
	}
	return s.file.Name(), nil
}
