package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// MaxList is how many elements a list of a foreign message may have. In memory each takes many times its bytes: 10 MB of
// empty objects are some hundred MB.
const MaxList = 1000

// ErrListTooLong says that a list has more than MaxList elements.
var ErrListTooLong = fmt.Errorf("a list of more than %d elements", MaxList)

// Few is a list of a foreign message. Decoding one stops with ErrListTooLong before there are more than MaxList elements in
// memory.
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

// EachElement decodes a JSON array, calling f for one element after the other; null has none. Errors are f's and the
// decoder's.
func EachElement[T any](raw []byte, f func(T) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	open, err := d.Token()
	switch {
	case err != nil:
		return err
	case open == nil:
		return nil
	case open != json.Delim('['):
		return json.Unmarshal(raw, &[]T{}) // says what it is in the library's words
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
