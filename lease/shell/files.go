package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// files is the private folder of a shell. Its FIFOs and files carry the protocol between the Shell and the integration script
// (package dialect).
type files struct {
	folder string
	up     *os.File // the FIFO from the script
	down   *os.File // the FIFO to it
	text   *os.File // what is sourced; rewritten in place, because ext4 writes a file to the disk that is emptied and written again
}

// Leftover matches the folders that a killed process leaves in Options.Folder.
const Leftover = "sh-*"

// makeFiles makes the folder, below parent, and opens the FIFOs for reading and writing,
// so that the shell's open never blocks. The caller removes the files that it returns, after an error too.
func makeFiles(parent string) (f files, err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return f, fmt.Errorf("make shell folder: %w", err)
	}
	if f.folder, err = os.MkdirTemp(parent, Leftover); err != nil { // 0700
		return f, fmt.Errorf("make shell folder: %w", err)
	}
	for name, fifo := range map[string]**os.File{"up": &f.up, "down": &f.down} {
		if err = syscall.Mkfifo(f.path(name), 0o600); err == nil {
			*fifo, err = os.OpenFile(f.path(name), os.O_RDWR|syscall.O_NONBLOCK, 0)
		}
		if err != nil {
			return f, fmt.Errorf("make shell folder: %w", err)
		}
	}
	if f.text, err = os.OpenFile(f.path("text"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return f, fmt.Errorf("make shell folder: %w", err)
	}
	return f, nil
}

func (f *files) path(name string) string { return filepath.Join(f.folder, name) }

// write writes a file at a path in the folder.
func (f *files) write(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(f.path(name)), 0o700); err != nil {
		return err
	}
	return os.WriteFile(f.path(name), []byte(text), 0o600)
}

// source writes the text that the script sources next.
func (f *files) source(text string) error {
	if _, err := f.text.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return f.text.Truncate(int64(len(text)))
}

func (f *files) remove() error {
	f.up.Close() // harmless for nil: makeFiles may have failed before it
	f.down.Close()
	f.text.Close()
	if err := os.RemoveAll(f.folder); err != nil {
		return fmt.Errorf("remove shell folder: %w", err)
	}
	return nil
}

// drain reads what is left in a FIFO that this process has open for reading and writing, without waiting for more.
func drain(fifo *os.File) (list []byte) {
	raw, err := fifo.SyscallConn()
	if err != nil {
		return nil // closed
	}
	_ = raw.Control(func(fd uintptr) { // closed
		var buf [4096]byte
		for {
			n, err := syscall.Read(int(fd), buf[:])
			if n <= 0 || err != nil { // EAGAIN: it is empty
				return
			}
			list = append(list, buf[:n]...)
		}
	})
	return list
}
