package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// decode reads a call's arguments into the struct that a points to. What is no JSON object, an unknown or repeated
// field, a wrong type and trailing text are errors that say so; a field named like one of ours in other letters is
// unknown. Nothing is ever taken for an empty argument (T3n).
func decode(args json.RawMessage, a any) error {
	trimmed := bytes.TrimSpace(args)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("arguments: want a JSON object")
	}
	known := map[string]bool{}
	typ := reflect.TypeOf(a).Elem()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		known[name] = true
	}
	if err := checkKeys(trimmed, known); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(trimmed))
	d.DisallowUnknownFields()
	if err := d.Decode(a); err != nil {
		if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("%s: got a JSON %s, want %s", te.Field, te.Value, te.Type)
		}
		return fmt.Errorf("arguments: %w", err)
	}
	return nil
}

// checkKeys walks the top level of a JSON object: encoding/json would take "Command" for "command" and let the last of
// two equal keys win, so that what is shown and what runs could differ.
func checkKeys(object []byte, known map[string]bool) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("arguments: not valid JSON: %w", err)
	}
	seen := map[string]bool{}
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return fmt.Errorf("arguments: not valid JSON: %w", err)
		}
		key, _ := tok.(string)
		if seen[key] {
			return fmt.Errorf("%s: given twice", key)
		}
		seen[key] = true
		if !known[key] {
			return fmt.Errorf("%s: no such argument", key)
		}
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return fmt.Errorf("arguments: not valid JSON: %w", err)
		}
		if string(skip) == "null" {
			return fmt.Errorf("%s: is null; leave it out instead", key)
		}
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("arguments: not valid JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("arguments: text after the JSON object")
	}
	return nil
}
