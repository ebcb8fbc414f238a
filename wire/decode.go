package wire

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// decoder reads values from a payload that passed precheck, so lengths need no second look. It owns buf for good:
// strings and bytes of the message may lie in it (see keep).
type decoder struct {
	buf    []byte
	pos    int
	room   int // bytes that lists, maps and messages may still take
	copies int // bytes of small values that may still be copied out of buf
}

// A payload of n bytes takes at most 2n + 256 KiB of memory to decode, its own bytes not counted: 7n/4 + 192 KiB for what
// it unfolds to (an element of one byte may be a struct of two hundred), n/4 + 48 KiB for copies of small values, and the
// rest for errors. Honest messages stay below: they write every field, and names are longer than what the values become;
// the constant is for lists of short texts, of which Go's own headers are the most.
func decoderOf(payload []byte) decoder {
	return decoder{buf: payload, room: len(payload)*7/4 + 192<<10, copies: len(payload)/4 + 48<<10}
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
	return wrong(typeName(d.buf[d.pos]) + " where " + what + " is wanted")
}

// null consumes a nil and reports whether there was one.
func (d *decoder) null() bool {
	if d.buf[d.pos] == mpNil {
		d.pos++
		return true
	}
	return false
}

// number reads the width bytes after the head, big-endian.
func (d *decoder) number(width int) uint64 {
	p := d.buf[d.pos+1:]
	d.pos += 1 + width
	switch width {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(p))
	case 4:
		return uint64(binary.BigEndian.Uint32(p))
	default:
		return binary.BigEndian.Uint64(p)
	}
}

// take returns the next n bytes as they lie in the payload.
func (d *decoder) take(n int) []byte {
	b := d.buf[d.pos : d.pos+n : d.pos+n]
	d.pos += n
	return b
}

func (d *decoder) readUint() (uint64, *fieldError) {
	c := d.buf[d.pos]
	switch {
	case c < 0x80:
		d.pos++
		return uint64(c), nil
	case c >= mpUint8 && c <= mpUint64:
		return d.number(1 << (c - mpUint8)), nil
	case c >= 0xe0 || c >= mpInt8 && c <= mpInt64:
		n, err := d.readInt()
		if err == nil && n < 0 {
			err = wrong("negative where an unsigned int is wanted")
		}
		return uint64(n), err
	}
	return 0, d.want("int")
}

func (d *decoder) readInt() (int64, *fieldError) {
	c := d.buf[d.pos]
	switch {
	case c < 0x80 || c >= 0xe0:
		d.pos++
		return int64(int8(c)), nil
	case c == mpInt8:
		return int64(int8(d.number(1))), nil
	case c == mpInt16:
		return int64(int16(d.number(2))), nil
	case c == mpInt32:
		return int64(int32(d.number(4))), nil
	case c == mpInt64:
		return int64(d.number(8)), nil
	case c >= mpUint8 && c <= mpUint64:
		n := d.number(1 << (c - mpUint8))
		if n > math.MaxInt64 {
			return 0, wrong("int over 2^63-1")
		}
		return int64(n), nil
	}
	return 0, d.want("int")
}

// readFloat takes an int as well: several libraries write 0.0 as one.
func (d *decoder) readFloat() (float64, *fieldError) {
	var f float64
	switch c := d.buf[d.pos]; {
	case c == mpFloat64:
		f = math.Float64frombits(d.number(8))
	case c == mpFloat32:
		f = float64(math.Float32frombits(uint32(d.number(4))))
	case c == mpUint64:
		return float64(d.number(8)), nil
	default:
		n, err := d.readInt()
		if err != nil {
			return 0, wrong(typeName(c) + " where float is wanted")
		}
		return float64(n), nil
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, wrong("not a finite number")
	}
	return f, nil
}

func (d *decoder) readBool() (bool, *fieldError) {
	switch d.buf[d.pos] {
	case mpTrue:
		d.pos++
		return true, nil
	case mpFalse:
		d.pos++
		return false, nil
	}
	return false, d.want("bool")
}

// rawStr reads a str without looking at its text; ok is false, and nothing is read, for another type.
func (d *decoder) rawStr() (b []byte, ok bool) {
	c := d.buf[d.pos]
	switch {
	case c >= 0xa0 && c < 0xc0:
		d.pos++
		return d.take(int(c & 0x1f)), true
	case c >= mpStr8 && c <= mpStr32:
		return d.take(int(d.number(1 << (c - mpStr8)))), true
	}
	return nil, false
}

func (d *decoder) rawBin() (b []byte, ok bool) {
	if c := d.buf[d.pos]; isBin(c) {
		return d.take(int(d.number(1 << (c - mpBin8)))), true
	}
	return nil, false
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
	switch c := d.buf[d.pos]; {
	case c >= 0x90 && c < 0xa0:
		d.pos++
		return int(c & 0x0f), nil
	case c == mpArray16:
		return int(d.number(2)), nil
	case c == mpArray32:
		return int(d.number(4)), nil
	}
	return 0, d.want("array")
}

func (d *decoder) mapHead() (int, *fieldError) {
	switch c := d.buf[d.pos]; {
	case c >= 0x80 && c < 0x90:
		d.pos++
		return int(c & 0x0f), nil
	case c == mpMap16:
		return int(d.number(2)), nil
	case c == mpMap32:
		return int(d.number(4)), nil
	}
	return 0, d.want("map")
}

// key reads a map's key, which precheck saw to be a str. It is good until the next read only.
func (d *decoder) key() []byte {
	b, _ := d.rawStr()
	return b
}

// skip passes over one value, however deep.
func (d *decoder) skip() {
	for left := 1; left > 0; left-- {
		size, children, err := tokenSize(d.buf[d.pos:])
		if err != nil {
			panic(err) // precheck let it pass: Unmarshal recovers
		}
		d.pos += size
		left += children
	}
}
