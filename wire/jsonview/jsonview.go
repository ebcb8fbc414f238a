// Package jsonview writes messages as JSON, for people and scripts. The protocol does not depend on it.
package jsonview

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"unicode"
	"unicode/utf8"

	"sublet/wire"
)

// Of returns the JSON view of m, one line without its newline: an object with "kind" and every field of the body. bin and os
// values are strings if they are UTF-8; otherwise a field is named NAME_base64 and contains base64, and an element of a list or
// map is the object {"base64": …}. m is not nil.
func Of(m wire.Message) []byte { return message(nil, m) }

func message(dst []byte, m wire.Message) []byte {
	dst = quoted(append(dst, `{"kind":`...), wire.KindOf(m))
	return append(fields(dst, reflect.ValueOf(m).Elem()), '}')
}

// fields appends ,"name":value for every encoded field.
func fields(dst []byte, v reflect.Value) []byte {
	for name, f := range wire.Fields(v) {
		dst = append(append(dst, ',', '"'), name...)
		if raw, ok := bytesOf(f); ok && !utf8.Valid(raw) {
			dst = inBase64(append(dst, `_base64":`...), raw)
			continue
		}
		dst = value(append(dst, '"', ':'), f)
	}
	return dst
}

// bytesOf returns the bytes of a value of type bin or os.
func bytesOf(v reflect.Value) ([]byte, bool) {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case wire.OSString:
		return []byte(x), true
	case []byte:
		return x, true
	}
	return nil, false
}

func inBase64(dst, raw []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), raw), '"')
}

// element appends a value without a name.
func element(dst []byte, v reflect.Value) []byte {
	if raw, ok := bytesOf(v); ok && !utf8.Valid(raw) {
		return append(inBase64(append(dst, `{"base64":`...), raw), '}')
	}
	return value(dst, v)
}

func value(dst []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if v.IsNil() {
			return append(dst, "null"...)
		}
	}
	switch v.Kind() {
	case reflect.String:
		return quoted(dst, v.String())
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(dst, v.Uint(), 10)
	case reflect.Float64:
		b, _ := json.Marshal(v.Float()) // it is finite in every message
		return append(dst, b...)
	case reflect.Pointer:
		return value(dst, v.Elem())
	case reflect.Struct:
		if e, ok := v.Interface().(wire.Envelope); ok {
			if e.Message == nil {
				return append(dst, "null"...)
			}
			return message(dst, e.Message)
		}
		start := len(dst)
		dst = fields(dst, v)
		dst[start] = '{' // replaces the first field's comma
		return append(dst, '}')
	case reflect.Map:
		dst = append(dst, '{')
		for i, k := range wire.SortedKeys(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = element(append(quoted(dst, k.String()), ':'), v.MapIndex(k))
		}
		return append(dst, '}')
	case reflect.Slice:
		if raw, ok := v.Interface().([]byte); ok {
			return quoted(dst, string(raw))
		}
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = element(dst, v.Index(i))
		}
		return append(dst, ']')
	}
	panic("jsonview: no JSON for " + v.Type().String())
}

// Escape returns JSON in which DEL, C1 and bidirectional controls and line separators are escaped as well, so that it can be printed on a
// terminal.
func Escape(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r >= 0x7f && unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// quoted quotes s; invalid UTF-8 becomes U+FFFD.
func quoted(dst []byte, s string) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // cannot fail: it is a string
	return append(dst, Escape(bytes.TrimSpace(text.Bytes()))...)
}
