package term

import (
	"fmt"
	"io"
	"os"
)

const (
	spoolAfter = 64 << 10 // raw bytes kept in memory before a file is made
	spoolHead  = 32 << 20 // bytes of the beginning that a spool file keeps
	spoolRing  = 32 << 20 // and of the end
)

// spool keeps the raw output of a command that was too long, up to 64 MiB in a 0600 file: the beginning, then a ring.
// A short output never touches the disk.
type spool struct {
	folder string // "" = keep nothing
	first  []byte
	file   *os.File
	total  int64
	failed error
}

func (s *spool) Write(p []byte) {
	if s.folder == "" || s.failed != nil {
		return
	}
	if s.file == nil {
		if len(s.first)+len(p) <= spoolAfter {
			s.first = append(s.first, p...)
			s.total += int64(len(p))
			return
		}
		if s.failed = s.open(); s.failed != nil {
			return
		}
	}
	s.put(p)
}

func (s *spool) open() error {
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return fmt.Errorf("make spool folder: %w", err)
	}
	f, err := os.CreateTemp(s.folder, "output-*.raw") // 0600
	if err != nil {
		return fmt.Errorf("make spool file: %w", err)
	}
	s.file, s.total = f, 0
	s.put(s.first)
	s.first = nil
	return nil
}

func (s *spool) put(p []byte) {
	for len(p) > 0 && s.failed == nil {
		at, room := s.total, spoolHead-s.total
		if s.total >= spoolHead {
			at = spoolHead + (s.total-spoolHead)%spoolRing
			room = spoolHead + spoolRing - at
		}
		n := min(int64(len(p)), room)
		if _, err := s.file.WriteAt(p[:n], at); err != nil {
			s.failed = fmt.Errorf("write spool file: %w", err)
			return
		}
		s.total += n
		p = p[n:]
	}
}

// finish returns the file's path, or "" where nothing need be kept. A ring that went round is put in order, with a line
// at the seam.
func (s *spool) finish(keep bool) (string, error) {
	if s.file == nil {
		if keep && s.folder != "" && s.failed == nil && len(s.first) > 0 {
			if s.failed = s.open(); s.failed != nil {
				return "", s.failed
			}
		} else {
			return "", s.failed
		}
	}
	path := s.file.Name()
	defer s.file.Close()
	if !keep || s.failed != nil {
		os.Remove(path)
		return "", s.failed
	}
	if s.total <= spoolHead+spoolRing {
		return path, nil
	}
	if err := s.straighten(path); err != nil {
		return path, fmt.Errorf("order spool file: %w", err)
	}
	return path, nil
}

func (s *spool) straighten(path string) error {
	out, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	seam := (s.total - spoolHead) % spoolRing
	lost := s.total - spoolHead - spoolRing
	for _, r := range []io.Reader{
		io.NewSectionReader(s.file, 0, spoolHead),
		io.NewSectionReader(s.file, spoolHead+seam, spoolRing-seam),
		io.NewSectionReader(s.file, spoolHead, seam),
	} {
		if _, err := io.Copy(out, r); err != nil {
			os.Remove(path + ".tmp")
			return err
		}
		if lost > 0 {
			fmt.Fprintf(out, "\n[... %d bytes not kept ...]\n", lost)
			lost = 0
		}
	}
	return os.Rename(path+".tmp", path)
}
