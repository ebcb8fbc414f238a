package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxList bounds a list in a foreign message. An element takes many times its bytes in memory: 10 MB of empty objects are some
// hundred MB.
const MaxList = 1000

// ErrListTooLong reports a list of more than MaxList elements.
var ErrListTooLong = fmt.Errorf("a list of more than %d elements", MaxList)

// Few is a list in a foreign message. Decoding fails with ErrListTooLong at the element after MaxList.
type Few[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *Few[T]) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	list := Few[T]{}
	err := EachElement(raw, func(v T) error {
		if len(list) == MaxList {
			return ErrListTooLong
		}
		list = append(list, v)
		return nil
	})
	if err == nil {
		*l = list
	}
	return err
}

// EachElement decodes a JSON array and calls f for each element; null has none. Errors are f's and the decoder's.
func EachElement[T any](raw []byte, f func(T) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	open, err := d.Token()
	switch {
	case err != nil:
		return err
	case open == nil:
		return nil
	case open != json.Delim('['):
		return json.Unmarshal(raw, &[]T{}) // returns the library's error
	}
	for d.More() {
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// Fault returns a JSON decoder's error without Go's terms.
func Fault(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return "the JSON ends in the middle"
	}
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	at := ""
	if wrong.Field != "" {
		at = wrong.Field + ": "
	}
	kind := wrong.Type.Kind().String()
	want, ok := map[string]string{
		"struct": "an object", "map": "an object", "slice": "an array", "bool": "true or false", "int": "a whole number", "int64": "a whole number", "float64": "a number",
	}[kind]
	if !ok {
		want = "a " + kind
	}
	return fmt.Sprintf("%sgot %s, want %s", at, wrong.Value, want)
}
