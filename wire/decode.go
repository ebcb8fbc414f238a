package wire

import (
	"io"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"
	"unsafe"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// decoder reads values from a payload that passed precheck, so lengths need no second look, and reading one cannot fail:
// where it does all the same, it panics, and Unmarshal recovers. It owns the payload for good: strings and bytes of the
// message may lie in it (see keep).
type decoder struct {
	payload
	*msgpack.Decoder
	room   int // bytes that lists, maps and messages may still take
	copies int // bytes of small values that may still be copied out of the payload
}

// payload is what the Decoder reads.
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

// next is the first byte of the next value.
func (p *payload) next() byte { return p.buf[p.pos] }

// take returns the next n bytes as they lie in the payload.
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

// A payload of n bytes takes at most 2n + 256 KiB of memory to decode, its own bytes not counted: 7n/4 + 192 KiB for what
// it unfolds to (an element of one byte may be a struct of two hundred), n/4 + 48 KiB for copies of small values, and the
// rest for errors. Honest messages stay below: they write every field, and names are longer than what the values become;
// the constant is for lists of short texts, of which Go's own headers are the most.
func decoderOf(buf []byte) *decoder {
	d := decoders.Get().(*decoder)
	d.payload = payload{buf: buf}
	d.room, d.copies = len(buf)*7/4+192<<10, len(buf)/4+48<<10
	return d
}

func (d *decoder) free() {
	d.payload = payload{}
	decoders.Put(d)
}

// must returns what the Decoder read.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// spend takes memory before it is allocated.
func (d *decoder) spend(bytes int) *fieldError {
	if d.room -= bytes; d.room < 0 {
		return wrong("lists and maps of the message take more than twice its bytes")
	}
	return nil
}

// allocated is at least what an object of that size takes: Go's size classes waste up to an eighth, the smallest more.
func allocated(size int) int { return size + size/8 + 16 }

// fieldError is what is wrong with a value, and where; struct, list and map decoders prepend to path on the way up.
type fieldError struct{ path, reason string }

func (e *fieldError) Error() string { return e.path + ": " + e.reason }

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

func inIndex(i int, err *fieldError) *fieldError {
	return in("["+strconv.Itoa(i)+"]", err)
}

func inKey(key string, err *fieldError) *fieldError {
	return in("["+quote(key)+"]", err)
}

func (d *decoder) want(what string) *fieldError {
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

// readUint takes an int of any width that is not negative.
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
		return 0, d.want("int")
	}
	n := must(d.DecodeInt64())
	if c == msgpcode.Uint64 && n < 0 {
		return 0, wrong("int over 2^63-1")
	}
	return n, nil
}

// readFloat takes an int as well: several libraries write 0.0 as one.
func (d *decoder) readFloat() (float64, *fieldError) {
	switch c := d.next(); {
	case c == msgpcode.Uint64:
		return float64(must(d.DecodeUint64())), nil
	case c != msgpcode.Float && c != msgpcode.Double && typeName(c) != "int":
		return 0, d.want("float")
	}
	f := must(d.DecodeFloat64())
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, wrong("not a finite number")
	}
	return f, nil
}

func (d *decoder) readBool() (bool, *fieldError) {
	if c := d.next(); c != msgpcode.True && c != msgpcode.False {
		return false, d.want("bool")
	}
	return must(d.DecodeBool()), nil
}

// rawStr reads a str without looking at its text; ok is false, and nothing is read, for another type.
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

func (d *decoder) readStr() (string, *fieldError) {
	b, ok := d.rawStr()
	if !ok {
		return "", d.want("str")
	}
	if !utf8.Valid(b) {
		return "", wrong("str that is not UTF-8")
	}
	return text(d.keep(b)), nil
}

func (d *decoder) readOSString() (string, *fieldError) {
	if b, ok := d.rawBin(); ok {
		return text(d.keep(b)), nil
	}
	b, ok := d.rawStr()
	if !ok {
		return "", d.want("str or bin")
	}
	if !utf8.Valid(b) {
		return "", wrong("str that is not UTF-8; send it as bin")
	}
	return text(d.keep(b)), nil
}

// readBin reads bytes; nil gives nil.
func (d *decoder) readBin() ([]byte, *fieldError) {
	if d.null() {
		return nil, nil
	}
	b, ok := d.rawBin()
	if !ok {
		return nil, d.want("bin")
	}
	return d.keep(b), nil
}

// keep returns b as the message may hold it. The payload belongs to the message, so most values stay where they are; but
// a small value of a large payload is copied, or an id in a map would hold megabytes for as long as it lives. A payload
// of very many small values keeps those that come late.
func (d *decoder) keep(b []byte) []byte {
	const small = 4 << 10
	if len(d.buf) <= small || len(b) >= len(d.buf)/4 || allocated(len(b)) > d.copies {
		return b
	}
	d.copies -= allocated(len(b))
	return append(make([]byte, 0, len(b)), b...)
}

// text is b as a string. Nobody writes to b any more: the decoder owns its buffer.
func text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}

func (d *decoder) arrayHead() (int, *fieldError) {
	if !isArray(d.next()) {
		return 0, d.want("array")
	}
	return must(d.DecodeArrayLen()), nil
}

func (d *decoder) mapHead() (int, *fieldError) {
	if !isMap(d.next()) {
		return 0, d.want("map")
	}
	return must(d.DecodeMapLen()), nil
}

// key reads a map's key, which precheck saw to be a str. It is good until the next read only.
func (d *decoder) key() []byte {
	b, _ := d.rawStr()
	return b
}

// skip passes over one value, however deep, without a copy of it.
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
