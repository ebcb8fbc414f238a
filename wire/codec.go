package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Marshal returns the payload of m: [kind, body]. It fails for a nil message or one that is not of this package, and
// with ErrTooLarge over MaxFrame.
func Marshal(m Message) ([]byte, error) {
	frame, err := AppendFrame(nil, m)
	if err != nil {
		return nil, err
	}
	return frame[4:], nil
}

// AppendFrame appends the frame of m, its length and its payload, to dst. On error (as Marshal) it returns dst as it was.
func AppendFrame(dst []byte, m Message) ([]byte, error) {
	start := len(dst)
	out, err := encoding(append(dst, 0, 0, 0, 0), func(e *encoder) error { return e.message(m) })
	if err != nil {
		return dst, err
	}
	n := len(out) - start - 4
	if n > MaxFrame {
		return dst, tooLarge(int64(n), MaxFrame)
	}
	binary.BigEndian.PutUint32(out[start:], uint32(n))
	return out, nil
}

// message writes [kind, body]. It fails, having written nothing, for a nil message and one that is not of this package.
func (e *encoder) message(m Message) error {
	v := reflect.ValueOf(m)
	if m == nil || v.IsNil() {
		return errors.New("wire: nil message")
	}
	k := byType()[v.Type().Elem()]
	if k == nil {
		return fmt.Errorf("wire: %T is not a message of the protocol", m)
	}
	e.arrayHead(2)
	e.text(k.name)
	planOf(k.typ).write(e, v.Elem())
	return nil
}

// Unmarshal decodes a payload. Strings and byte slices of the message may alias payload, so the caller must not write to
// it any more. An error is an *Error, which answers the message: ErrUnknownKind or ErrInvalidMessage.
func Unmarshal(payload []byte) (m Message, err error) {
	if err := precheck(payload); err != nil {
		return nil, invalid("", "", "", err.Error())
	}
	d := newDecoder(payload)
	defer func() {
		d.release()
		if r := recover(); r != nil { // precheck should prevent this, but a payload must never end the daemon
			m, err = nil, invalid("", "", "", fmt.Sprintf("cannot be decoded: %v", r))
		}
	}()
	m, ferr := d.readMessage()
	if ferr == nil {
		return m, nil
	}
	kind, id := peek(payload)
	if ferr == errUnknownKind {
		return nil, unknownKind(kind, id)
	}
	return nil, invalid(kind, id, ferr.path, ferr.reason)
}

var errUnknownKind = &fieldError{reason: "unknown kind"}

// readMessage reads [kind, body].
func (d *decoder) readMessage() (Message, *fieldError) {
	n, err := d.arrayHead()
	if err != nil {
		return nil, err
	}
	if n != 2 {
		return nil, wrong(fmt.Sprintf("an array of %d where [kind, body] is wanted", n))
	}
	name, ok := d.rawStr()
	if !ok {
		return nil, wrong("the kind is " + typeName(d.buf[d.pos]) + ", not str")
	}
	k := byKind()[string(name)]
	if k == nil {
		return nil, errUnknownKind
	}
	if err := d.spend(allocated(int(k.typ.Size()))); err != nil {
		return nil, err
	}
	m := k.new()
	if err := planOf(k.typ).read(d, reflect.ValueOf(m).Elem()); err != nil {
		return nil, err
	}
	return m, nil
}

// peek returns kind and request_id of a payload that passed precheck but could not be decoded, for the error reply. Each
// is "" where it cannot be read.
func peek(payload []byte) (kind string, id RequestID) {
	d := newDecoder(payload)
	defer d.release()
	if n, err := d.arrayHead(); err != nil || n != 2 {
		return "", ""
	}
	name, ok := d.rawStr()
	if !ok {
		return "", ""
	}
	kind = clip(string(name))
	n, err := d.mapHead()
	if err != nil {
		return kind, ""
	}
	for range n {
		if string(d.key()) != "request_id" {
			d.skip()
			continue
		}
		if s, err := d.readStr(); err == nil && len(s) <= 128 { // the longest RequestID
			id = RequestID(strings.Clone(s)) // s may alias the payload, which the error would keep in memory
		}
		break
	}
	return kind, id
}
