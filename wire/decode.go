package wire

import (
	"io"
	"math"
	"sync"
	"unicode/utf8"
	"unsafe"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// decoder reads values from a payload that passed precheck, so lengths are not checked again. A read that fails
// nevertheless panics, and Unmarshal recovers. Strings and byte slices of the message may alias the payload, which must
// not be written to any more (see detach).
type decoder struct {
	payload
	*msgpack.Decoder
	room   int // bytes that lists, maps and messages may still allocate
	copies int // bytes of small values that may still be copied out of the payload
}

// payload implements the io.ByteScanner and io.Reader that the Decoder reads from.
type payload struct {
	buf []byte
	pos int
}

func (p *payload) Read(to []byte) (int, error) {
	if p.pos == len(p.buf) {
		return 0, io.EOF
	}
	n := copy(to, p.buf[p.pos:])
	p.pos += n
	return n, nil
}

func (p *payload) ReadByte() (byte, error) {
	if p.pos == len(p.buf) {
		return 0, io.EOF
	}
	p.pos++
	return p.buf[p.pos-1], nil
}

func (p *payload) UnreadByte() error {
	p.pos--
	return nil
}

// next returns the first byte of the next value, which gives its type, without consuming it.
func (p *payload) next() byte { return p.buf[p.pos] }

// take consumes the next n bytes and returns them as a slice of the payload.
func (p *payload) take(n int) []byte {
	b := p.buf[p.pos : p.pos+n : p.pos+n]
	p.pos += n
	return b
}

var decoders = sync.Pool{New: func() any {
	d := new(decoder)
	d.Decoder = msgpack.NewDecoder(&d.payload)
	return d
}}

// newDecoder returns a decoder of buf from the pool. Decoding n bytes allocates at most 2n + 256 KiB: 7n/4 + 192 KiB for
// lists, maps and structs (one byte of payload may be a struct of two hundred bytes), n/4 + 48 KiB for copies of small
// values, and the rest for errors. Messages with every field written stay below that, because field names take more bytes
// than the decoded values; the constants are for lists of short strings, where Go's string headers dominate.
func newDecoder(buf []byte) *decoder {
	d := decoders.Get().(*decoder)
	d.payload = payload{buf: buf}
	d.room, d.copies = len(buf)*7/4+192<<10, len(buf)/4+48<<10
	return d
}

func (d *decoder) release() {
	d.payload = payload{}
	decoders.Put(d)
}

// must panics if err is not nil, which precheck rules out.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// spend charges an allocation to the decoder's memory budget, before it is made, and fails if it is exhausted.
func (d *decoder) spend(bytes int) *fieldError {
	if d.room -= bytes; d.room < 0 {
		return wrong("lists and maps of the message take more than twice its bytes")
	}
	return nil
}

// allocated returns an upper bound of what Go allocates for an object of size bytes: size classes waste up to an eighth,
// the smallest ones more.
func allocated(size int) int { return size + size/8 + 16 }

// fieldError is the reason why a value is invalid, and the path to it; struct, list and map decoders prepend their step.
type fieldError struct{ path, reason string }

func wrong(reason string) *fieldError { return &fieldError{reason: reason} }

// in prepends a step to the path of err.
func in(step string, err *fieldError) *fieldError {
	switch {
	case err.path == "":
		err.path = step
	case err.path[0] == '[':
		err.path = step + err.path
	default:
		err.path = step + "." + err.path
	}
	return err
}

// mismatch returns the error for a next value whose type is not what.
func (d *decoder) mismatch(what string) *fieldError {
	return wrong(typeName(d.next()) + " where " + what + " is wanted")
}

// null consumes a nil and reports whether there was one.
func (d *decoder) null() bool {
	if d.next() != msgpcode.Nil {
		return false
	}
	d.pos++
	return true
}

// readUint reads a non-negative int of any width.
func (d *decoder) readUint() (uint64, *fieldError) {
	if d.next() == msgpcode.Uint64 {
		return must(d.DecodeUint64()), nil
	}
	n, err := d.readInt()
	if err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, wrong("negative where an unsigned int is wanted")
	}
	return uint64(n), nil
}

func (d *decoder) readInt() (int64, *fieldError) {
	c := d.next()
	if typeName(c) != "int" {
		return 0, d.mismatch("int")
	}
	n := must(d.DecodeInt64())
	if c == msgpcode.Uint64 && n < 0 {
		return 0, wrong("int over 2^63-1")
	}
	return n, nil
}

// readFloat also accepts an int: several msgpack libraries write 0.0 as one.
func (d *decoder) readFloat() (float64, *fieldError) {
	switch c := d.next(); {
	case c == msgpcode.Uint64: // DecodeFloat64 converts it by way of int64
		return float64(must(d.DecodeUint64())), nil
	case c != msgpcode.Float && c != msgpcode.Double && typeName(c) != "int":
		return 0, d.mismatch("float")
	}
	f := must(d.DecodeFloat64())
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, wrong("not a finite number")
	}
	return f, nil
}

func (d *decoder) readBool() (bool, *fieldError) {
	if c := d.next(); c != msgpcode.True && c != msgpcode.False {
		return false, d.mismatch("bool")
	}
	return must(d.DecodeBool()), nil
}

// rawStr reads a str without checking that it is UTF-8; ok is false, and nothing is consumed, for another type. b aliases
// the payload.
func (d *decoder) rawStr() (b []byte, ok bool) {
	if !msgpcode.IsString(d.next()) {
		return nil, false
	}
	return d.take(must(d.DecodeBytesLen())), true
}

func (d *decoder) rawBin() (b []byte, ok bool) {
	if !msgpcode.IsBin(d.next()) {
		return nil, false
	}
	return d.take(must(d.DecodeBytesLen())), true
}

// readStr decodes a str, which must be UTF-8.
func (d *decoder) readStr() (string, *fieldError) {
	b, ok := d.rawStr()
	if !ok {
		return "", d.mismatch("str")
	}
	if !utf8.Valid(b) {
		return "", wrong("str that is not UTF-8")
	}
	return text(d.detach(b)), nil
}

// readOSString decodes a path, a command or another string of the operating system: a bin of any bytes, or a str, which must be UTF-8.
func (d *decoder) readOSString() (string, *fieldError) {
	if b, ok := d.rawBin(); ok {
		return text(d.detach(b)), nil
	}
	b, ok := d.rawStr()
	if !ok {
		return "", d.mismatch("str or bin")
	}
	if !utf8.Valid(b) {
		return "", wrong("str that is not UTF-8; send it as bin")
	}
	return text(d.detach(b)), nil
}

func (d *decoder) readBin() ([]byte, *fieldError) {
	b, ok := d.rawBin()
	if !ok {
		return nil, d.mismatch("bin")
	}
	return d.detach(b), nil
}

// detach returns b, or a copy of it where b is small and the payload large: otherwise an id that somebody stores would
// keep megabytes alive. Values beyond the budget for copies are not copied.
func (d *decoder) detach(b []byte) []byte {
	const small = 4 << 10
	if len(d.buf) <= small || len(b) >= len(d.buf)/4 || allocated(len(b)) > d.copies {
		return b
	}
	d.copies -= allocated(len(b))
	return append(make([]byte, 0, len(b)), b...)
}

// text returns b as a string without a copy, since nothing writes to the payload any more.
func text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}

func (d *decoder) arrayHead() (int, *fieldError) {
	if !isArray(d.next()) {
		return 0, d.mismatch("array")
	}
	return must(d.DecodeArrayLen()), nil
}

func (d *decoder) mapHead() (int, *fieldError) {
	if !isMap(d.next()) {
		return 0, d.mismatch("map")
	}
	return must(d.DecodeMapLen()), nil
}

// key reads a map key; precheck has verified that it is a str. The result aliases the payload.
func (d *decoder) key() []byte {
	b, _ := d.rawStr()
	return b
}

// skip consumes one value, including all that nests in it. It cannot fail after precheck.
func (d *decoder) skip() {
	for left := 1; left > 0; left-- {
		size, children, err := tokenSize(d.buf[d.pos:])
		if err != nil {
			panic(err)
		}
		d.pos += size
		left += children
	}
}
