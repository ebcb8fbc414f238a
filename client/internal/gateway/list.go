package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// MaxList bounds a list in a foreign message. An element takes many times its bytes in memory: 10 MB of empty objects are some
// hundred MB.
const MaxList = 1000

// Few is a list in a foreign message. Decoding fails at the element after MaxList.
type Few[T any] []T

// tooLong is the Value of the error of a list that is too long.
const tooLong = "long list"

// UnmarshalJSON implements json.Unmarshaler.
func (l *Few[T]) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	list := Few[T]{}
	err := EachElement(raw, func(v T) error {
		if len(list) == MaxList {
			return &json.UnmarshalTypeError{Value: tooLong, Type: reflect.TypeFor[[]T]()} // the decoder adds the field's name
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
	if open, _ := d.Token(); open != json.Delim('[') {
		return json.Unmarshal(raw, &[]T{}) // nil for null, else the library's error
	}
	for d.More() {
		var v T
		if err := d.Decode(&v); err != nil {
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field == "" {
				wrong.Type = reflect.TypeFor[[]T]()
			}
			return err
		}
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// FieldFault returns, for people, which field of a message a JSON decoder's error is about ("" = the whole message), and what is wrong
// with it. It knows the types that fields of foreign messages have.
func FieldFault(err error) (field, why string) {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return "", "the JSON ends in the middle"
	case !ok:
		return "", strings.TrimPrefix(err.Error(), "json: ")
	case wrong.Value == tooLong:
		return wrong.Field, fmt.Sprintf("has a list of more than %d elements", MaxList)
	}
	want := map[reflect.Kind]string{
		reflect.Struct: "an object", reflect.Map: "an object", reflect.Slice: "a list of objects", reflect.Bool: "true or false",
		reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Float64: "a number", reflect.String: "a string",
	}[wrong.Type.Kind()]
	if wrong.Type.Kind() == reflect.Slice && wrong.Type.Elem().Kind() == reflect.String {
		want = "a list of strings"
	}
	return wrong.Field, "must be " + want
}

// Fault returns the results of FieldFault in one text.
func Fault(err error) string {
	field, why := FieldFault(err)
	if field == "" {
		return why
	}
	return field + ": " + why
}
