package wire

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// encoder appends values to out in their shortest form. Errors of msgpack's methods are ignored because they are those
// of the underlying writer, and writing to out never fails.
type encoder struct {
	*msgpack.Encoder
	out []byte
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.Encoder = msgpack.NewEncoder(e)
	return e
}}

// encoding calls f with a pooled encoder that appends to dst, and returns the extended slice.
func encoding(dst []byte, f func(e *encoder) error) ([]byte, error) {
	e := encoders.Get().(*encoder)
	e.out = dst
	err := f(e)
	dst, e.out = e.out, nil
	encoders.Put(e)
	return dst, err
}

func (e *encoder) Write(p []byte) (int, error) {
	e.out = append(e.out, p...)
	return len(p), nil
}

func (e *encoder) WriteByte(c byte) error {
	e.out = append(e.out, c)
	return nil
}

func (e *encoder) null()           { _ = e.EncodeNil() }
func (e *encoder) bool(b bool)     { _ = e.EncodeBool(b) }
func (e *encoder) uint(n uint64)   { _ = e.EncodeUint(n) }
func (e *encoder) int(n int64)     { _ = e.EncodeInt(n) }
func (e *encoder) arrayHead(n int) { _ = e.EncodeArrayLen(n) }
func (e *encoder) mapHead(n int)   { _ = e.EncodeMapLen(n) }
func (e *encoder) bytes(b []byte)  { _ = e.EncodeBytes(b) }
func (e *encoder) float(f float64) { _ = e.EncodeFloat64(f) }

// text encodes s as str. Invalid UTF-8, from a model or a program, becomes U+FFFD, because readers refuse it.
func (e *encoder) text(s string) {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	_ = e.EncodeString(s)
}

// osString encodes text of the operating system: str where it is UTF-8, bin where it is not.
func (e *encoder) osString(s string) {
	if utf8.ValidString(s) {
		_ = e.EncodeString(s)
		return
	}
	_ = e.EncodeBytesLen(len(s))
	e.out = append(e.out, s...)
}
