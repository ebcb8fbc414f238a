package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

func readAll(r *LineReader) (lines []string, err error) {
	for {
		line, err := r.Next()
		if long, ok := errors.AsType[*LineTooLongError](err); ok {
			lines = append(lines, long.Error())
			continue
		}
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
}

func TestLineReader(t *testing.T) {
	const long = "message is over the limit of 8 bytes"
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"\n\n \r\n", nil},
		{"a\nb\r\nc", []string{"a", "b", "c"}},
		{"12345678\n12345678\r\n", []string{"12345678", "12345678"}},
		{"123456789\nok\n", []string{long, "ok"}},
		{"123456789\r\nok\n", []string{long, "ok"}},
		{strings.Repeat("x", 100000) + "\nok\n", []string{long, "ok"}},
		{strings.Repeat("x", 100000), []string{long}},
		{"123456789", []string{long}},
		{"{\"cut", []string{"{\"cut"}},
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(c.in), "bytes": iotest.OneByteReader(strings.NewReader(c.in)), "data with error": iotest.DataErrReader(strings.NewReader(c.in))} {
			got, err := readAll(NewLineReader(r, 8))
			if !errors.Is(err, io.EOF) || !slices.Equal(got, c.want) {
				t.Errorf("%.20q, %s: got %q %v, want %q", c.in, name, got, err, c.want)
			}
		}
	}
}

// A long line takes memory while it is read, and gives it back.
func TestLineReaderLetsLongLinesGo(t *testing.T) {
	r := NewLineReader(strings.NewReader(strings.Repeat("x", 3<<20)+"\nshort\n"), MaxLine)
	if line, err := r.Next(); err != nil || len(line) != 3<<20 {
		t.Fatalf("got %d bytes, %v", len(line), err)
	}
	if line, err := r.Next(); err != nil || string(line) != "short" {
		t.Fatalf("got %q, %v", line, err)
	}
	if cap(r.buf) > 1<<20 {
		t.Errorf("%d bytes are kept", cap(r.buf))
	}
}

func FuzzLineReader(f *testing.F) {
	f.Add("a\nb", 3)
	f.Add("aaaa\r\n\r\n\nb", 2)
	f.Add(strings.Repeat("y", 70000)+"\nz", 100)
	f.Fuzz(func(t *testing.T, in string, most int) {
		if most < 1 || most > 1<<20 {
			return
		}
		want, _ := readAll(NewLineReader(strings.NewReader(in), most))
		got, _ := readAll(NewLineReader(iotest.HalfReader(strings.NewReader(in)), most))
		if !slices.Equal(got, want) {
			t.Errorf("depends on how it is read: %q and %q", got, want)
		}
		for _, l := range got {
			if strings.ContainsAny(l, "\n") || l == "" {
				t.Errorf("got %q", l)
			}
		}
	})
}

// slowWriter takes a write when it is let.
type slowWriter struct {
	let  chan struct{}
	got  bytes.Buffer
	fail error
}

func (w *slowWriter) Write(p []byte) (int, error) {
	<-w.let
	if w.fail != nil {
		return 0, w.fail
	}
	return w.got.Write(p)
}

func TestWriterWaitsForTheClientAndKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowWriter{let: make(chan struct{})}
		o := NewWriter(w)
		piece := bytes.Repeat([]byte("x"), writerBound/4)
		sent := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 20 {
				if err := o.Send(t.Context(), append([]byte{byte('a' + i)}, piece...)); err != nil {
					t.Error(err)
				}
				sent = i + 1
			}
		}()
		synctest.Wait()
		if sent == 0 || sent > 6 {
			t.Errorf("%d were taken by a client that does not read, want up to 6", sent)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := o.Send(ctx, piece); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's end", err)
		}
		close(w.let)
		<-done
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		var order []byte
		for i := range 20 {
			order = append(order, w.got.Bytes()[i*(len(piece)+1)])
		}
		if string(order) != "abcdefghijklmnopqrst" {
			t.Errorf("order: %s", order)
		}
		if err := o.Send(t.Context(), []byte("late")); !errors.Is(err, ErrWriterClosed) {
			t.Errorf("after Close: got %v", err)
		}
	})
}

// A write that failed while Close waited for it was reported by nobody.
func TestWriterCloseReportsTheLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowWriter{let: make(chan struct{}), fail: io.ErrClosedPipe}
		o := NewWriter(w)
		if err := o.Send(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { close(w.let) })
		if err := o.Close(); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("got %v", err)
		}
	})
}

func TestWriterReportsAFailedWrite(t *testing.T) {
	w := &slowWriter{let: make(chan struct{}), fail: io.ErrClosedPipe}
	close(w.let)
	o := NewWriter(w)
	if err := o.Send(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	<-o.Broken()
	if err := o.Send(t.Context(), []byte("y")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
	if err := o.Close(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Close: got %v", err)
	}
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Rate
		for i := range 100 {
			if ok, _ := r.Take(100); !ok {
				t.Fatalf("request %d was refused", i)
			}
		}
		ok, retry := r.Take(100)
		if ok || retry != 10*time.Millisecond {
			t.Errorf("got %v %v, want a refusal for 10ms", ok, retry)
		}
		time.Sleep(retry)
		if ok, _ := r.Take(100); !ok {
			t.Error("refused after the wait")
		}
		time.Sleep(time.Hour)
		n := 0
		for {
			if ok, _ := r.Take(100); !ok {
				break
			}
			n++
		}
		if n != 100 {
			t.Errorf("%d at once after an hour, want 100", n)
		}
	})
}

func TestPlace(t *testing.T) {
	p := Place{Cwd: "/here"}
	got, err := p.With(nil, "/there/../x", map[string]string{"A": "1", "API_TOKEN": "s3cret"})
	if err != nil || got.Cwd != "/x" || got.Env["A"] != "1" || got.Env["API_TOKEN"] != "" {
		t.Errorf("got %+v %v", got, err)
	}
	for _, bad := range []string{"relative", "/nul\x00"} {
		if _, err := p.With(nil, bad, nil); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	for _, bad := range []string{"", "A=B", "N\x00"} {
		if _, err := p.With(nil, "", map[string]string{bad: "1"}); err == nil {
			t.Errorf("variable %q was taken", bad)
		}
	}
}
