package child

import (
	"io"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv("LEAVE_GROUP") == "" {
		os.Exit(m.Run())
	}
	if _, err := syscall.Setsid(); err != nil {
		panic(err)
	}
	os.Stdout.WriteString("left")
	time.Sleep(time.Hour)
}

// A program that has left its process group and ignores the end of its input is ended all the same.
func TestEndOutsideOfTheGroup(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(Spec{
		Name: "leaver", Path: self, Env: append(os.Environ(), "LEAVE_GROUP=1"), Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p.Stdout, make([]byte, len("left"))); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.End()
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("End does not return")
	}
	if err := syscall.Kill(p.PID(), 0); err != syscall.ESRCH {
		t.Errorf("the program is still there: %v", err)
		_ = syscall.Kill(p.PID(), syscall.SIGKILL)
		<-ended
	}
}
