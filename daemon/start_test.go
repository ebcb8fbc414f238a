package daemon

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"sublet/wire"
	"sublet/wire/socket"
)

// A daemon that cannot start tells those that wait for it why, and what to do; its log may be what cannot be written. They
// used to learn that the connection was reset.
func TestStartThatFailsIsAnswered(t *testing.T) {
	p := home(t, "")
	lock, ln := listening(t, p)
	if err := os.Mkdir(p.Database(), 0o700); err != nil {
		t.Fatal(err)
	}
	var waiting []*wire.Conn
	for range 3 {
		nc, err := socket.Dial(t.Context(), p.Socket)
		if err != nil {
			t.Fatal(err)
		}
		c := wire.NewConn(nc)
		defer c.Close()
		waiting = append(waiting, c)
		if err := c.Send(&wire.EnvSnapshot{ProtocolMin: 1, ProtocolMax: 1, Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := Run(t.Context(), Options{Paths: p, place: &place{listener: ln, lock: lock}}); err == nil {
		t.Error("it started")
	}
	for _, c := range waiting {
		e := receive(t, c, func(*wire.Error) bool { return true })
		if e.Code != wire.CodeInternal || e.Recoverable || !strings.Contains(e.Message, "is a directory") || !strings.Contains(e.Hint, p.State) {
			t.Errorf("got %+v", e)
		}
	}
	if _, err := os.Lstat(p.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket: %v", err)
	}
}
